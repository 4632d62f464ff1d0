"""The HTTP side: one POST per call, the token, limits, the log, a clean stop."""

import hashlib
import hmac
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from errors import INVALID_REQUEST, UNAUTHORIZED
from rpc import call

MOST_BODY = 16 * 1024 * 1024  # bytes
MOST_CONNECTIONS = 256  # further ones wait


class Server(ThreadingHTTPServer):
    """A server whose stop lets the calls under way end."""

    daemon_threads = True  # idle connections do not hold up the end
    request_queue_size = 128

    def __init__(self, address, handler):
        super().__init__(address, handler)
        self._connections = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._calls, self._idle = 0, threading.Condition()

    @property
    def url(self):
        """Where it answers."""
        return f"http://{self.server_address[0]}:{self.server_address[1]}"

    def process_request(self, request, client_address):
        self._connections.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):  # a caller that went away
            super().handle_error(request, client_address)

    def __enter__(self):
        with self._idle:
            self._calls += 1

    def __exit__(self, *_):
        with self._idle:
            self._calls -= 1
            self._idle.notify_all()

    def stop(self):
        """Take no new calls, and wait for those under way."""
        self.shutdown()
        self.server_close()
        with self._idle:
            self._idle.wait_for(lambda: self._calls == 0, timeout=30)


class Handler(BaseHTTPRequestHandler):
    """What endpoint and hooks share: bodies in, JSON out."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "destination", ""
    timeout = 75  # seconds; longer than load balancers keep a connection
    wbufsize = -1  # head and body leave together
    disable_nagle_algorithm = True

    def read_body(self):
        """Give the body; None when it is too large or cannot be read."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks() if "Content-Length" not in self.headers else None
        length = self.headers.get("Content-Length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BODY:
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the body was cut off")
        return body

    def _read_chunks(self):
        body = bytearray()
        while True:
            try:
                size = int(self.rfile.readline(1024).split(b";")[0], 16)
            except ValueError:
                return None
            if size < 0 or len(body) + size > MOST_BODY:
                return None
            if size == 0:
                while self.rfile.readline(65536) not in (b"\r\n", b"\n", b""):
                    pass  # trailers
                return bytes(body)
            body += self.rfile.read(size)
            self.rfile.readline(1024)

    def send_json(self, status, value, **headers):
        """Answer; None is a body that was not read, after which the connection ends."""
        body = json.dumps(value, separators=(",", ":")).encode("ascii")
        self.send_response_only(status)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """The lines of http.server hold the URL; ours do not."""


class Secret:
    """The token that callers send: the digest of the header that carries it."""

    def __init__(self, token):
        self.set(token)

    def set(self, token):
        """Put a token into force."""
        self._digest = _digest(f"Bearer {token}")

    def is_in(self, header):
        """Compare digests, which have one length: how long it takes says nothing about
        the token."""
        return hmac.compare_digest(_digest(header), self._digest)


def _digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def endpoint_handler(store, secret, log):
    """Make the handler of the endpoint."""

    class Endpoint(Handler):
        def do_POST(self):
            begun = time.monotonic()
            with self.server:
                status, value, note, headers = self._answer()
                self.send_json(status, value, **headers)
                self.wfile.flush()
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            milliseconds = round((time.monotonic() - begun) * 1000)
            log(json.dumps({"time": now, "status": status, **note, "ms": milliseconds}))

        def _answer(self):
            if self.path.split("?", 1)[0] != "/":
                return self._refusal(404, INVALID_REQUEST, "the endpoint is at /")
            if self.command != "POST":
                return self._refusal(405, INVALID_REQUEST, "the endpoint takes POST only", Allow="POST")
            if not secret.is_in(self.headers.get("Authorization", "")):
                return self._refusal(401, UNAUTHORIZED, "the token is missing or wrong", WWW_Authenticate="Bearer")
            body = self.read_body()
            if body is None:
                return self._refusal(413, INVALID_REQUEST, f"the body cannot be read, or is larger than {MOST_BODY} bytes")
            reply, note = call(body, store)
            return 200, reply, note, {}

        def do_GET(self):
            if self.path == "/healthz":
                self.send_json(200, {"status": "ok"})
            else:
                self.do_POST()

        do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = do_POST

        def _refusal(self, status, code, message, **headers):
            self.close_connection = True  # the body was not read
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
            return status, error, {"code": code}, headers

        def send_error(self, code, message=None, explain=None):
            """http.server calls this for what is not HTTP; it would send a page."""
            self.close_connection = True
            status, value, _, _ = self._refusal(code, INVALID_REQUEST, "the request cannot be read")
            self.send_json(status, value)

    return Endpoint
