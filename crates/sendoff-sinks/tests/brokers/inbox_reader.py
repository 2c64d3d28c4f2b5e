"""Prints an inbox table as JSON lines, in the order of arrival: KIND URL TABLE, or with SQL to run instead of reading."""

import base64
import json
import sys
from urllib.parse import unquote, urlsplit


def connect(kind, url):
    if kind == "sqlite":
        import sqlite3

        return sqlite3.connect(url.removeprefix("sqlite:"))
    parts = urlsplit(url)
    name = parts.path.lstrip("/")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if kind == "postgres":
        import psycopg

        return psycopg.connect(host=parts.hostname, port=parts.port, user=user, password=password, dbname=name)
    import pymysql

    return pymysql.connect(host=parts.hostname, port=parts.port, user=user, password=password, database=name)


kind, url, table = sys.argv[1:4]
connection = connect(kind, url)
cursor = connection.cursor()
if len(sys.argv) > 4:
    cursor.execute(sys.argv[4])
    connection.commit()
    sys.exit()
key = "`key`" if kind == "mysql" else '"key"'
cursor.execute(f"SELECT event_id, {key}, payload, headers, topic, position, epoch FROM {table} ORDER BY id")
for event_id, key, payload, headers, topic, position, epoch in cursor.fetchall():
    headers = headers if isinstance(headers, dict) else json.loads(headers)
    assert headers["ce-type"] == topic and headers["ce-sendoffposition"] == str(position)
    assert headers["ce-sendoffepoch"] == str(epoch)
    payload = base64.b64encode(bytes(payload)).decode()
    print(json.dumps({"id": str(event_id), "key": key, "payload": payload, "headers": headers}))
