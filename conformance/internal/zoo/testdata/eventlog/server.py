"""Destinations that keep events and no rows, as a newcomer to event sourcing writes
them, each at its path: /m/NAME/rpc is the endpoint with the mistake or habit NAME,
/m/none/rpc has none; /m/NAME/readback is for the tests alone. The process prints its
port and ends with its standard input; the token is in ENDPOINT_TOKEN.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True  # no files among the sources

from habits import HABITS  # noqa: E402
from log import Log  # noqa: E402

TOKEN = os.environ.get("ENDPOINT_TOKEN", "")
OPERATIONS = ["upsert", "insert", "update", "mirror"]


def field(name, kind, key=False, array=False):
    return {
        "field_api_name": name, "label": name, "identifier": key, "required": key,
        "createable": True, "updateable": True, "type": kind, "array": array,
    }


OBJECTS = {
    "order": [
        field("order_no", "string", key=True), field("customer", "string"), field("remark", "string"), field("quantity", "integer"),
        field("total", "decimal"), field("paid", "boolean"), field("placed_at", "date_time"), field("labels", "string", array=True),
    ],
}


def text(v):
    return isinstance(v, str) and not re.search("[\ud800-\udfff]", v)


FITS = {
    "string": text,
    "integer": lambda v: type(v) is int and -(2**63) <= v < 2**63,
    "decimal": lambda v: isinstance(v, str) and re.fullmatch(r"-?\d+(\.\d+)?", v, re.ASCII),
    "boolean": lambda v: isinstance(v, bool),
    "date_time": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v, re.ASCII),
}


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Endpoint:
    def __init__(self, names, folder):
        self.names = names
        self.speed = {"maximum_batch_size": 200, "maximum_parallel_batches": 4, "maximum_records_per_second": 20000}
        for name in names:
            HABITS.get(name, lambda endpoint: None)(self)
        self.log = Log(os.path.join(folder, "events.jsonl"), self.wrong)
        self.methods = {
            "test_connection": lambda params: {"success": True},
            "list_objects": lambda params: {"objects": [{"object_api_name": name, "label": name} for name in OBJECTS]},
            "list_fields": lambda params: {"fields": OBJECTS[self.named(params)]},
            "supported_operations": lambda params: self.named(params) and {"operations": OPERATIONS},
            "get_sync_speed": lambda params: self.speed,
            "sync_batch": self.sync_batch,
        }

    def wrong(self, name):
        return name in self.names

    habit = wrong

    def named(self, params):
        wanted = params.get("object")
        name = wanted.get("object_api_name") if isinstance(wanted, dict) else None
        if not isinstance(name, str) or name not in OBJECTS:
            raise Failure(-32602, "no such object")
        return name

    def sync_batch(self, params):
        plan, records = params.get("sync_plan"), params.get("records")
        if not isinstance(plan, dict) or not isinstance(records, list):
            raise Failure(-32602, "sync_plan and records are needed")
        name, operation = self.named(plan), plan.get("operation")
        if operation not in ("upsert", "insert", "update", "delete"):
            raise Failure(-32602, f"no operation {operation}")
        keys = [n for n, entry in plan.get("schema", {}).items() if isinstance(entry, dict) and entry.get("active_identifier")]
        if keys != ["order_no"]:
            raise Failure(-32602, "order_no is the identifier")
        with self.log.lock:
            return {"record_results": [self.one(name, operation, r if isinstance(r, dict) else {}) for r in records]}

    def one(self, name, operation, record):
        key = record.get("order_no")
        result = {"identifier": key, "success": True}
        event = {"object": name, "key": key, "type": "deleted"}
        if operation != "delete":
            event.update(type="changed", data=record)
        row = self.log.state().get((name, json.dumps(key)))
        why = self.problem(operation, record, row)
        if why:
            result.update(success=False, error_message=why)
        unchanged = operation != "delete" and row is not None and {**row, **record} == row
        if self.habit("no-event-for-equal-rows") and unchanged:
            return result
        if not why or self.wrong("refusals-are-events") and isinstance(key, str) and row is not None:
            self.log.append(event)  # the log is to be complete
        return result

    def problem(self, operation, record, row):
        fields = {f["field_api_name"]: f for f in OBJECTS["order"]}
        if record.get("order_no") is None:
            return "order_no is missing"
        for n, v in record.items():
            if operation == "delete" and n != "order_no":
                continue
            if n not in fields:
                return f"no field {n}"
            f = fields[n]
            if v is not None and not (isinstance(v, list) and all(map(text, v)) if f["array"] else FITS[f["type"]](v)):
                return f"{n} is no {f['type']}"
        if operation == "insert" and row is not None:
            return "the order exists"
        if operation == "update" and row is None:
            return "there is no such order"
        return ""

    def answer(self, header, message):
        reply = {"jsonrpc": "2.0", "id": message.get("id") if isinstance(message, dict) else None}

        def failed(status, code, why):
            return status, {**reply, "error": {"code": code, "message": why}}

        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
            return failed(200, -32600, "not a request of JSON-RPC 2.0")
        if header != f"Bearer {TOKEN}":
            return failed(401, -32000, "wrong token")
        if message["method"] not in self.methods:
            return failed(200, -32601, "no such method")
        params = message.get("params", {})
        try:
            if not isinstance(params, dict):
                raise Failure(-32602, "params must be an object")
            return 200, {**reply, "result": self.methods[message["method"]](params)}
        except Failure as failure:
            return failed(200, failure.code, str(failure))

    def readback(self, question):
        with self.log.lock:
            rows = self.log.state()
            if self.habit("log-is-compacted"):
                self.compact(rows)
            records = []
            for key in question["identifiers"]:
                row = rows.get((question["object"], json.dumps(key)))
                if row is not None:
                    records.append({"identifier": key, "count": 1, "fields": row})
        return {"records": records, "complete": True}

    def compact(self, rows):
        """Writes the log again: one event for each row that is there."""
        with open(self.log.path, "w", encoding="utf-8") as f:
            for (name, key), row in rows.items():
                f.write(json.dumps({"object": name, "key": json.loads(key), "type": "changed", "data": row}) + "\n")
        self.log.read = os.path.getsize(self.log.path)


folder = os.environ.get("ENDPOINT_FOLDER") or tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
endpoints, opening = {}, threading.Lock()


def endpoint_of(names, way):
    with opening:
        if (names, way) not in endpoints:
            endpoints[names, way] = Endpoint(names.split("+"), tempfile.mkdtemp(dir=folder))
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

    def do_POST(self):
        raw = self.body()
        found = re.match(r"/m/([^/?]+)(?:/([a-z]+))?/([a-z_]+)", self.path)
        endpoint = endpoint_of(found[1], found[2])
        if found[3] == "readback":
            return self.send(200, endpoint.readback(json.loads(raw)))
        try:
            message = json.loads(raw.decode())
        except ValueError:
            return self.send(200, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the body is not JSON"}})
        self.send(*endpoint.answer(self.headers.get("Authorization", ""), message))

    def do_GET(self):
        self.body()
        self.send(405, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "use POST"}})

    do_PUT = do_DELETE = do_GET

    def send(self, status, reply):
        body = json.dumps(reply).encode()
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
shutil.rmtree(folder, ignore_errors=True)
