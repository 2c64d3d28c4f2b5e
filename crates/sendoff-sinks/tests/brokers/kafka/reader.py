"""Every record of a topic, partition by partition, by confluent-kafka: `reader.py ADDRESS TOPIC`."""

import base64
import json
import sys

from confluent_kafka import Consumer, TopicPartition

PATIENCE = 20


def text(value):
    return None if value is None else value.decode()


address, topic = sys.argv[1:]
consumer = Consumer(
    {"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False, "check.crcs": True}
)
partitions = consumer.list_topics(topic, timeout=PATIENCE).topics[topic].partitions
for partition in sorted(partitions):
    place = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE)
    if end == 0:
        continue
    consumer.assign([place])
    at = 0
    while at < end:
        records = consumer.consume(1_000, timeout=PATIENCE)
        assert records, f"partition {partition} has no record {at} of {end}"
        for record in records:
            assert record.error() is None, record.error()
            at = record.offset() + 1
            shown = {
                "partition": partition,
                "key": text(record.key()),
                "payload": base64.b64encode(record.value()).decode(),
                "headers": {name: text(value) for name, value in record.headers() or []},
            }
            print(json.dumps(shown))
consumer.close()
