"""Makes queues and topics, and takes what is in a queue, by boto3: `reader.py PORT sqs|sns|read NAME [SETTINGS]`."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor, wait

import boto3
from botocore.config import Config

FIFO = ".fifo"
ACCOUNT = "000000000000"


def client(service):
    return boto3.client(
        service,
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="reader",
        aws_secret_access_key="reader",
        config=Config(max_pool_connections=8),
    )


def make_queue(name, settings="{}"):
    attributes = json.loads(settings)
    if name.endswith(FIFO):
        attributes["FifoQueue"] = "true"
    client("sqs").create_queue(QueueName=name, Attributes=attributes)


def make_topic(name, settings="{}"):
    """With a queue of the same name that gets all that is published, as it is."""
    make_queue(name, settings)
    topic = {"FifoTopic": "true"} if name.endswith(FIFO) else {}
    arn = client("sns").create_topic(Name=name, Attributes=topic)["TopicArn"]
    queue = f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}"
    client("sns").subscribe(
        TopicArn=arn, Protocol="sqs", Endpoint=queue, Attributes={"RawMessageDelivery": "true"}
    )


def read(name):
    """One asks, so that the order is that of the queue; others delete, which lets a group's next message out."""
    sqs, url = client("sqs"), f"http://127.0.0.1:{port}/{ACCOUNT}/{name}"
    deleting = set()
    with ThreadPoolExecutor(4) as deleters:
        while True:
            answer = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=10,
                VisibilityTimeout=43_200,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages = answer.get("Messages", [])
            for message in messages:
                show(message)
            if messages and name.endswith(FIFO):
                entries = [
                    {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                    for index, message in enumerate(messages)
                ]
                deleting.add(deleters.submit(sqs.delete_message_batch, QueueUrl=url, Entries=entries))
            elif not messages and deleting:
                for done in wait(deleting).done:
                    assert not done.result().get("Failed"), done.result()
                deleting.clear()
            elif not messages:
                return


def show(message):
    shown = {
        "body": message["Body"],
        "attributes": {
            name: value["StringValue"] for name, value in message.get("MessageAttributes", {}).items()
        },
        "group": message["Attributes"].get("MessageGroupId"),
        "deduplication": message["Attributes"].get("MessageDeduplicationId"),
    }
    print(json.dumps(shown))


port, command, *arguments = sys.argv[1:]
{"sqs": make_queue, "sns": make_topic, "read": read}[command](*arguments)
