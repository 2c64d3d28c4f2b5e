"""Every record of a topic, partition by partition, by confluent-kafka: `reader.py ADDRESS TOPIC`.

A partition ends where the answers with its records say so. It is not asked for its last offset: tansu then tells the first one of its last batch.
"""

import base64
import json
import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

PATIENCE = 20


def text(value):
    return None if value is None else value.decode()


address, topic = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": address,
        "group.id": "reader",
        "enable.auto.commit": False,
        "check.crcs": True,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
    }
)
partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
for partition in sorted(partitions):
    consumer.assign([TopicPartition(topic, partition, 0)])
    at = 0
    while True:
        record = consumer.poll(PATIENCE)
        assert record is not None, f"partition {partition} says nothing of what comes at {at}"
        assert record.partition() == partition, record.partition()
        if record.error() is not None:
            assert record.error().code() == KafkaError._PARTITION_EOF, record.error()
            break
        at = record.offset() + 1
        shown = {
            "partition": partition,
            "key": text(record.key()),
            "payload": base64.b64encode(record.value()).decode(),
            "headers": {name: text(value) for name, value in record.headers() or []},
        }
        print(json.dumps(shown))
consumer.close()
