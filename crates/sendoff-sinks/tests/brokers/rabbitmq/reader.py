"""Declares exchanges and queues, and reads queues without emptying them: `reader.py PORT declare|read NAMES`."""

import base64
import json
import sys

import pika


def declare(channel, exchange, queue, pattern, settings):
    settings = json.loads(settings)
    channel.exchange_declare(exchange, "topic", durable=True, internal=settings.pop("internal", False))
    channel.queue_declare(queue, durable=True, arguments=settings)
    channel.queue_bind(queue, exchange, pattern)


def read(channel, queue):
    """What is not acknowledged goes back to its place when the connection ends."""
    left = channel.queue_declare(queue, passive=True).method.message_count
    if left == 0:
        return
    for method, properties, body in channel.consume(queue, inactivity_timeout=20):
        if method is None:
            sys.exit(f"{left} messages did not come")
        show(method, properties, body)
        left -= 1
        if left == 0:
            return


def show(method, properties, body):
    message = {
        "exchange": method.exchange,
        "routing_key": method.routing_key,
        "id": properties.message_id,
        "type": properties.type,
        "content_type": properties.content_type,
        "persistent": properties.delivery_mode == 2,
        "timestamp": properties.timestamp,
        "headers": properties.headers,
        "payload": base64.b64encode(body).decode(),
    }
    print(json.dumps(message))


port, command, *names = sys.argv[1:]
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(port), socket_timeout=20))
{"declare": declare, "read": read}[command](connection.channel(), *names)
sys.stdout.flush()
connection.close()
