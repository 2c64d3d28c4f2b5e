"""Writes events with plain SQL, as a host in another language does: no code of sendoff's is involved.

usage: enqueue.py postgres|mysql|sqlite URL TABLE < events.json

Standard input is a list of objects whose names are columns; "payload" is hex, "deliver_at" is in microseconds since 1970.
All of them are written twice: in a transaction that is rolled back, and in one that commits.
"""

import json
import sqlite3
import sys
import uuid
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def moment(micros):
    return EPOCH + timedelta(microseconds=micros)


class Postgres:
    placeholder = "%s"
    key = "key"
    event_id = staticmethod(uuid.UUID)
    deliver_at = staticmethod(moment)

    def connect(self, url):
        import psycopg

        return psycopg.connect(url)


class Mysql:
    placeholder = "%s"
    key = "`key`"

    def event_id(self, text):
        return uuid.UUID(text).bytes

    def deliver_at(self, micros):
        return moment(micros).replace(tzinfo=None)

    def connect(self, url):
        import pymysql

        parts = urlsplit(url)
        return pymysql.connect(
            host=parts.hostname,
            port=parts.port,
            user=parts.username,
            password=parts.password or "",
            database=parts.path.lstrip("/"),
            charset="utf8mb4",
        )


class Sqlite:
    placeholder = "?"
    key = "key"
    event_id = staticmethod(str)
    deliver_at = staticmethod(int)

    def connect(self, path):
        return sqlite3.connect(path, timeout=10)


def insert(database, cursor, table, event):
    """One INSERT of the columns that the event has; the others have their defaults."""
    forms = {
        "payload": bytes.fromhex,
        "headers": json.dumps,
        "event_id": database.event_id,
        "deliver_at": database.deliver_at,
    }
    columns = ", ".join(database.key if name == "key" else name for name in event)
    places = ", ".join([database.placeholder] * len(event))
    values = [forms.get(name, str)(value) for name, value in event.items()]
    cursor.execute(f"INSERT INTO {table} ({columns}) VALUES ({places})", values)


def main():
    kind, url, table = sys.argv[1:]
    database = {"postgres": Postgres, "mysql": Mysql, "sqlite": Sqlite}[kind]()
    events = json.load(sys.stdin)
    connection = database.connect(url)
    for end in (connection.rollback, connection.commit):
        cursor = connection.cursor()
        for event in events:
            insert(database, cursor, table, event)
        end()
    connection.close()


main()
