"""A webhook's receiver: writes down each request before it answers. Only the standard library."""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import socket
import ssl

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--port", type=int, required=True)
OPTIONS.add_argument("--file", required=True, help="what was received, a line of JSON each")
OPTIONS.add_argument("--ready", required=True, help="is made once it listens")
OPTIONS.add_argument("--dedupe", action="store_true", help="drop what has a known Idempotency-Key")
OPTIONS.add_argument("--secret", help="take only what is signed with it")
OPTIONS.add_argument("--authorization", help="take only what has this header")
OPTIONS.add_argument("--max-body", type=int, default=1 << 30)
OPTIONS.add_argument("--certificate")
OPTIONS.add_argument("--key")
OPTIONS.add_argument("--client-authority", help="take only who has a certificate that it has signed")


class Store:
    """The file, and the keys in it."""

    def __init__(self, path):
        self.keys = set()
        if os.path.exists(path):
            with open(path, "rb") as lines:
                for line in lines:
                    if line.endswith(b"\n"):
                        self.keys.add(json.loads(line)["headers"].get("idempotency-key"))
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, path, headers, body):
        line = {"path": path, "headers": headers, "body": base64.b64encode(body).decode()}
        os.write(self.file, json.dumps(line).encode() + b"\n")
        self.keys.add(headers.get("idempotency-key"))


class Receiver(asyncio.Protocol):
    def __init__(self, options, store):
        self.options, self.store, self.pending = options, store, b""
        self.head = None

    def connection_made(self, transport):
        self.transport = transport
        plain = transport.get_extra_info("socket")
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.pending += data
        while True:
            if self.head is None:
                head, end, rest = self.pending.partition(b"\r\n\r\n")
                if not end:
                    return
                first, *lines = head.decode("latin-1").split("\r\n")
                pairs = (line.split(":", 1) for line in lines)
                headers = {name.lower(): value.strip().encode("latin-1").decode() for name, value in pairs}
                method, path, _ = first.split(" ")
                self.head, self.pending = (method, path, headers), rest
            length = int(self.head[2].get("content-length", 0))
            if len(self.pending) < length:
                return
            body, self.pending = self.pending[:length], self.pending[length:]
            head, self.head = self.head, None
            self.handle(*head, body)

    def handle(self, method, path, headers, body):
        if self.options.authorization and headers.get("authorization") != self.options.authorization:
            # As some do: with all that was sent.
            return self.answer(401, json.dumps(headers))
        if method != "POST":
            return self.answer(204)
        kind, _, rest = path.strip("/").partition("/")
        if kind == "status":
            status, _, after = rest.partition("/")
            return self.answer(int(status), "no\r\n" + "x" * 500, [("retry-after", after)] if after else [])
        if kind == "redirect":
            return self.answer(307, "", [("location", "/elsewhere/s3cret?s3cret")])
        if kind == "slow":
            return None
        if kind == "drop" or body == b"drop":
            return self.transport.abort()
        if kind == "drop-once" and headers.get("idempotency-key") not in self.store.keys:
            self.store.keys.add(headers.get("idempotency-key"))
            return self.transport.abort()
        if kind == "echo":
            return self.answer(422, json.dumps(headers))
        if self.options.secret and not self.is_signed(headers, body):
            return self.answer(401, "the signature is wrong")
        if len(body) > self.options.max_body or b"refuse me" in body:
            return self.answer(413, "that is too much")
        if not (self.options.dedupe and headers.get("idempotency-key") in self.store.keys):
            self.store.add(path, headers, body)
        return self.answer(200, "thanks")

    def is_signed(self, headers, body):
        key = base64.b64decode(self.options.secret.removeprefix("whsec_"))
        content = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
        expected = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        given = headers.get("webhook-signature", "").split(" ")
        return any(hmac.compare_digest(expected, one) for one in given)

    def answer(self, status, text="", headers=()):
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers)]
        if status != 204:
            lines.append(f"content-length: {len(text)}")
        self.transport.write(("\r\n".join(lines) + "\r\n\r\n" + text).encode())


async def main():
    options = OPTIONS.parse_args()
    store, tls = Store(options.file), None
    if options.certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.certificate, options.key)
        if options.client_authority:
            tls.load_verify_locations(options.client_authority)
            tls.verify_mode = ssl.CERT_REQUIRED
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Receiver(options, store), "127.0.0.1", options.port, ssl=tls, backlog=1000
    )
    open(options.ready, "w").close()
    await server.serve_forever()


asyncio.run(main())
