"""A service that takes orders. It knows nothing of sendoff but one table: beside its own row it writes an event, in the same transaction.

usage: DATABASE_URL=postgres://... service.py FIRST LAST

Some orders are rolled back. What was committed is printed, a line of JSON for each event, in the order in which it was written.
"""

import json
import os
import sys

import psycopg


def place(connection, number):
    """One order and its event: both, or neither."""
    order = {"order": number, "total": 10 * number}
    key = f"customer-{number % 3}"
    cursor = connection.cursor()
    cursor.execute("INSERT INTO orders (number, customer) VALUES (%s, %s)", (number, key))
    cursor.execute(
        "INSERT INTO sendoff.event (topic, key, payload) VALUES (%s, %s, %s) RETURNING event_id",
        ("orders.placed", key, json.dumps(order).encode()),
    )
    (event_id,) = cursor.fetchone()
    if number % 4 == 0:
        connection.rollback()
        return
    connection.commit()
    print(json.dumps({"id": str(event_id), "key": key, "payload": order}))


def main():
    first, last = int(sys.argv[1]), int(sys.argv[2])
    connection = psycopg.connect(os.environ["DATABASE_URL"])
    connection.execute("CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY, customer text NOT NULL)")
    connection.commit()
    for number in range(first, last + 1):
        place(connection, number)
    connection.close()


main()
