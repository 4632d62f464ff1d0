"""Custom destinations in plain Python, each at its path: /m/NAME/rpc is
the endpoint with the mistake or habit NAME, /m/NAME+OTHER/rpc has two,
/m/none/rpc has none. The same path has /m/NAME/readback and /m/NAME/alter_schema,
for the tests alone. The process prints its port and ends with its standard
input; the token is in ENDPOINT_TOKEN.
"""

import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True  # no files among the sources

from endpoint import Endpoint  # noqa: E402

# A zone that differs from UTC shows what takes local time for UTC; one without
# a database of zones.
os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
time.tzset()

endpoints, opening = {}, threading.Lock()


def endpoint_of(names, way):
    with opening:
        if (names, way) not in endpoints:
            endpoints[names, way] = Endpoint(names.split("+"))
        return endpoints[names, way]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            parts.append(self.rfile.read(size))
            self.rfile.readline()
            if size == 0:
                return b"".join(parts)

    def endpoint(self):
        found = re.match(r"/m/([^/]+)(?:/([a-z]+))?/([a-z_]+)/?(?:\?|$)", self.path)
        return endpoint_of(found[1], found[2]), found[3]

    def do_POST(self):
        raw = self.body()
        endpoint, what = self.endpoint()
        if endpoint.wrong("redirected-to-the-slash") and what == "rpc" and not self.path.endswith("/"):
            self.send_response(308)
            self.send_header("Location", self.path + "/")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if what == "readback":
            return self.answer(200, json.dumps(endpoint.store.readback(json.loads(raw))))
        if what == "alter_schema":
            return self.answer(200, json.dumps(endpoint.alter_schema(json.loads(raw))))
        try:
            message = json.loads(raw.decode("utf-8"))
        except ValueError:
            return self.answer(200, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}))
        status, reply = endpoint.call(self.headers.get("Authorization", ""), message)
        if reply is None:
            return self.send_error(status)
        if endpoint.wrong("latin-1-replies"):
            return self.answer(status, json.dumps(reply, ensure_ascii=False), "latin-1")
        return self.answer(status, json.dumps(reply))

    def do_GET(self):
        self.body()
        self.answer(405, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "use POST"}}))

    do_PUT = do_DELETE = do_GET

    def answer(self, status, text, charset="utf-8"):
        body = text.encode(charset, "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass  # a silent process


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):  # a caller that went away
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
