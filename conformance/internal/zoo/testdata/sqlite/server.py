"""Destinations as newcomers write them, on SQLite, each at its path: /m/NAME/rpc is
the endpoint with the mistake or habit NAME, /m/none/rpc has none; /m/NAME/readback
is for the tests alone. The process prints its port and ends with its standard input;
the token is in ENDPOINT_TOKEN.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True  # no files among the sources

from app import App  # noqa: E402

os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"  # a zone with summer time
time.tzset()

memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
folder = os.environ.get("ENDPOINT_FOLDER") or tempfile.mkdtemp(dir=memory)
apps, opening = {}, threading.Lock()

BAD_GATEWAY = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
UNAVAILABLE = BAD_GATEWAY.replace("502 Bad Gateway", "503 Service Unavailable")


def app_of(names, way):
    with opening:
        if (names, way) not in apps:
            apps[names, way] = App(names.split("+"), tempfile.mkdtemp(dir=folder))
        return apps[names, way]


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

    def do_POST(self):
        raw = self.body()
        found = re.match(r"/m/([^/?]+)(?:/([a-z]+))?/([a-z_]+)(?:\?code=([^&]*))?", self.path)
        app = app_of(found[1], found[2])
        if found[3] == "readback":
            return self.send(200, json.dumps(app.db.readback(json.loads(raw))))
        if app.wrong("one-503-in-sixty") and next(app.calls) % 60 == 0:
            return self.send(503, UNAVAILABLE, "text/html")
        try:
            message = json.loads(raw.decode())
        except ValueError:
            return self.send(200, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the body is not JSON"}}))
        status, reply = app.answer(self.headers.get("Authorization", ""), found[4], self.path, message)
        if reply is None:
            return self.send(status, BAD_GATEWAY, "text/html")
        if app.habit("pretty-printed"):
            return self.send(status, "\n" + json.dumps(reply, indent=4) + "\n\n")
        if app.habit("chunked-replies"):
            return self.send_in_chunks(status, json.dumps(reply, ensure_ascii=False).encode())
        if app.habit("http-1-0"):
            self.close_connection = True
            return self.send(status, json.dumps(reply), "application/json", {"Connection": "close"})
        self.send(status, json.dumps(reply))

    def do_GET(self):
        self.body()
        self.send(405, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "use POST"}}))

    do_PUT = do_DELETE = do_GET

    def send(self, status, text, kind="application/json", headers=()):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_in_chunks(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(body), 100):
            part = body[at:at + 100]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

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
shutil.rmtree(folder, ignore_errors=True)
