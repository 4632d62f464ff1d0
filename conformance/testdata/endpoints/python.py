"""A custom destination in plain Python.

--mistake NAME builds in one mistake that people make; "none" is clean, --list
prints the names. It prints its port and ends when its standard input does. The
token stands in ENDPOINT_TOKEN. Beside the protocol it answers /readback and
/hooks/alter_schema, for the test alone.
"""

import argparse
import datetime
import functools
import hmac
import json
import math
import os
import re
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MISTAKES = """
nan-in-speed traceback-in-error html-error-page local-datetime truthiness float-for-decimals replaces-the-row
update-creates insert-overwrites one-table-for-all deletes-by-prefix seen-before-cache success-as-text values-by-position
first-identifier-always empty-set-clause upsert-appends commit-in-a-thread lru-cache token-startswith latin-1 strips-text
int-from-float no-identifier-check drops-failures
""".split()

parser = argparse.ArgumentParser()
parser.add_argument("--mistake", default="none", choices=["none", *MISTAKES])
parser.add_argument("--list", action="store_true")
args = parser.parse_args()
TOKEN = os.environ.get("ENDPOINT_TOKEN", "")

# A zone without a database of zones: five hours behind UTC.
os.environ["TZ"] = "EST5"
time.tzset()


def wrong(name):
    return args.mistake == name


class RPCError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def field(name, kind, **extra):
    """The eight properties of a field. Identifiers are unique and required."""
    return {
        "field_api_name": name, "label": name.replace("_", " "), "identifier": False, "required": False,
        "createable": True, "updateable": True, "type": kind, "array": False, **extra,
    }


IDENTIFIER = {"identifier": True, "required": True}
TABLES = {
    "person": {
        "label": "Personen (größer)",
        "operations": ["upsert", "insert", "update", "mirror"],
        "fields": [
            field("email", "string", **IDENTIFIER), field("name", "string", required=True), field("city", "string"),
            field("age", "integer"), field("balance", "decimal"), field("score", "float"), field("active", "boolean"),
            field("born_on", "date"), field("seen_at", "date_time"), field("tags", "string", array=True),
        ],
    },
    "device": {
        "label": "Devices",
        "operations": ["upsert", "update", "mirror"],
        "fields": [
            field("serial", "integer", **IDENTIFIER), field("name", "string", **IDENTIFIER),
            field("owner", "string"), field("room", "string"), field("price", "decimal"), field("slots", "integer"),
        ],
    },
}
rows = {name: [] for name in TABLES}
lock = threading.RLock()
seen = set()


def rows_of(table):
    if wrong("one-table-for-all"):
        return rows["person"]
    return rows[table]


def find(table, name, value):
    if wrong("one-table-for-all"):
        name = "_key"
    # type() keeps True, 1 and "1" apart.
    return [r for r in rows_of(table) if r.get(name) == value and type(r.get(name)) is type(value)]


def well_formed(text):
    try:
        text.encode("utf-8")
        return True
    except UnicodeEncodeError:  # half a surrogate pair
        return False


FITS = {
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v),
    "decimal": lambda v: isinstance(v, str) and re.fullmatch(r"-?\d+(\.\d+)?", v),
    "date": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", v),
    "date_time": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v),
    "string": lambda v: isinstance(v, str) and well_formed(v),
}


def check(f, value):
    name = f["field_api_name"]
    if value is None:
        if f["required"]:
            raise ValueError(f"{name} is required")
        return
    items = [value]
    if f["array"]:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be an array")
        items = value
    if not all(FITS[f["type"]](v) for v in items):
        raise ValueError(f"{name} is no valid {f['type']}")


def stored(f, value):
    """What is kept of a value; a clean endpoint keeps it as it is."""
    if value is None or f["array"]:
        return value
    if wrong("local-datetime") and f["type"] == "date_time":
        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return datetime.datetime.fromtimestamp(moment.timestamp()).strftime("%Y-%m-%dT%H:%M:%SZ")
    if wrong("float-for-decimals") and f["type"] == "decimal":
        return str(float(value))
    if wrong("int-from-float") and f["type"] == "integer" and not f["identifier"]:
        return int(float(value))
    if wrong("strips-text") and f["type"] == "string":
        return value.strip()
    return value


def taken(table, record, row):
    for f in TABLES[table]["fields"]:
        name = f["field_api_name"]
        if f["identifier"] and record.get(name) is not None:
            if any(r is not row for r in find(table, name, record[name])):
                raise ValueError(f"{name} is taken")


def write(table, operation, active, record):
    """Carries out one record; whatever does not fit is raised."""
    fields = {f["field_api_name"]: f for f in TABLES[table]["fields"]}
    if record.get(active) is None and wrong("no-identifier-check"):
        return
    if record.get(active) is None:
        raise ValueError(f"{active} is missing")
    check(fields[active], record[active])
    matching = find(table, active, record[active])
    if wrong("first-identifier-always"):
        first = next(name for name, f in fields.items() if f["identifier"])
        matching = find(table, first, record.get(first)) if operation != "delete" else matching
    row = matching[0] if matching else None
    if operation == "delete":
        if wrong("deletes-by-prefix") and isinstance(record[active], str):
            stem = record[active][:-1]
            rows_of(table)[:] = [r for r in rows_of(table) if not str(r.get(active)).startswith(stem)]
        elif row is not None:
            rows_of(table).remove(row)
        return
    unknown = [name for name in record if name not in fields]
    if unknown:
        raise ValueError(f"there is no field {unknown[0]}")
    for name, value in record.items():
        check(fields[name], value)
    if operation == "insert" and row is not None and not wrong("insert-overwrites"):
        raise ValueError("record already exists")
    if operation == "update" and row is None and not wrong("update-creates"):
        raise ValueError("record not present")
    if wrong("upsert-appends") and operation == "upsert":
        row = None
    elif not wrong("one-table-for-all") and not wrong("first-identifier-always"):
        taken(table, record, row)
    values = {name: stored(fields[name], value) for name, value in record.items()}
    if wrong("truthiness"):
        values = {name: value for name, value in values.items() if value}
    if row is None:
        missing = [n for n, f in fields.items() if f["required"] and values.get(n) is None]
        if missing and not wrong("update-creates") and not wrong("first-identifier-always"):
            raise ValueError(f"{missing[0]} is required")
        if wrong("one-table-for-all"):
            values["_key"] = record[active]
        rows_of(table).append(values)
    elif wrong("replaces-the-row"):
        row.clear()
        row.update(values)
    else:
        row.update(values)


def table_of(params):
    """The name of the object that the params ask for."""
    wanted = params.get("object")
    name = wanted.get("object_api_name") if isinstance(wanted, dict) else None
    if not isinstance(name, str) or name not in TABLES:
        raise RPCError(-32602, "there is no such object")
    return name


def sync_batch(params):
    plan, records = params.get("sync_plan"), params.get("records")
    if not isinstance(plan, dict) or not isinstance(records, list):
        raise RPCError(-32602, "sync_plan and records are needed")
    table, operation = table_of(plan), plan.get("operation")
    allowed = TABLES[table]["operations"]
    if operation not in allowed and not (operation == "delete" and "mirror" in allowed):
        raise RPCError(-32602, f"{table} does not allow {operation}")
    identifiers = [f["field_api_name"] for f in TABLES[table]["fields"] if f["identifier"]]
    active = next((name for name, s in plan.get("schema", {}).items() if s.get("active_identifier")), None)
    if active not in identifiers:
        raise RPCError(-32602, "the plan has no identifier that the object allows")
    if wrong("empty-set-clause") and operation != "delete" and set(plan["schema"]) == {active}:
        raise RPCError(-32000, 'near "WHERE": syntax error')
    work = functools.partial(carry_out, table, operation, active, plan, records)
    if wrong("commit-in-a-thread") and operation in ("insert", "upsert"):
        threading.Timer(1.2, work).start()
        return {"record_results": [{"identifier": r.get(active), "success": True} for r in records]}
    return work()


def carry_out(table, operation, active, plan, records):
    results = []
    for record in records:
        key = record.get(active)
        if wrong("values-by-position") and operation != "delete":
            columns = [f["field_api_name"] for f in TABLES[table]["fields"] if f["field_api_name"] in plan["schema"]]
            record = dict(zip(columns, record.values()))
        try:
            if wrong("seen-before-cache") and operation != "delete":
                mark = json.dumps([table, operation, record], sort_keys=True)
                if mark in seen:
                    results.append({"identifier": key, "success": True})
                    continue
            with lock:
                write(table, operation, active, record)
                if wrong("seen-before-cache") and operation != "delete":
                    seen.add(mark)
            results.append({"identifier": key, "success": "true" if wrong("success-as-text") else True})
        except ValueError as error:
            if not wrong("drops-failures"):
                results.append({"identifier": key, "success": False, "error_message": str(error)})
    return {"record_results": results}


def fields_of(name):
    return [dict(f) for f in TABLES[name]["fields"]]


if wrong("lru-cache"):
    fields_of = functools.lru_cache(maxsize=None)(fields_of)


def get_sync_speed(_params):
    speed = {"maximum_batch_size": 500, "maximum_parallel_batches": 8, "maximum_records_per_second": 20000}
    if wrong("nan-in-speed"):
        durations = []
        speed["average_seconds"] = sum(durations) / len(durations) if durations else float("nan")
    return speed


METHODS = {
    "test_connection": lambda params: {"success": True},
    "list_objects": lambda params: {"objects": [{"object_api_name": n, "label": t["label"]} for n, t in TABLES.items()]},
    "list_fields": lambda params: {"fields": fields_of(table_of(params))},
    "supported_operations": lambda params: {"operations": TABLES[table_of(params)]["operations"]},
    "get_sync_speed": get_sync_speed,
    "sync_batch": sync_batch,
}


def admitted(header):
    if wrong("token-startswith"):
        return header.startswith("Bearer ") and TOKEN.startswith(header[len("Bearer "):])
    return hmac.compare_digest(header.encode(), f"Bearer {TOKEN}".encode())


def call(header, message):
    """Answers one parsed request: HTTP status and reply."""
    def failure(status, code, text):
        return status, {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}

    request_id = message.get("id") if isinstance(message, dict) else None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return failure(200, -32600, "Invalid Request")
    if not admitted(header):
        return failure(401, -32000, "the token is not valid")
    if message["method"] not in METHODS:
        if wrong("html-error-page"):
            return 404, None
        return failure(200, -32601, "Method not found")
    try:
        params = message.get("params", {})
        if not isinstance(params, dict):
            raise RPCError(-32602, "params must be an object")
        return 200, {"jsonrpc": "2.0", "id": request_id, "result": METHODS[message["method"]](params)}
    except RPCError as error:
        text = traceback.format_exc() if wrong("traceback-in-error") else str(error)
        return failure(200, error.code, text)


def readback(question):
    name, records = question["identifier_field"], []
    with lock:
        for value in question["identifiers"]:
            found = find(question["object"], name, value)
            if found:
                records.append({"identifier": value, "count": len(found), "fields": {k: v for k, v in found[0].items() if k != "_key"}})
    return {"records": records, "complete": True}


def alter_schema(question):
    fields = TABLES["person"]["fields"]
    if question["action"] == "begin":
        fields.append(field("nickname", "string"))
    else:
        fields[:] = [f for f in fields if f["field_api_name"] != "nickname"]
    return {"ok": True, "object": "person", "field": "nickname"}


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
        if self.path == "/readback":
            return self.answer(200, readback(json.loads(raw)), clean=True)
        if self.path == "/hooks/alter_schema":
            return self.answer(200, alter_schema(json.loads(raw)), clean=True)
        try:
            message = json.loads(raw.decode("utf-8"))
        except ValueError:
            return self.answer(200, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
        status, reply = call(self.headers.get("Authorization", ""), message)
        if reply is None:
            return self.send_error(status)
        return self.answer(status, reply)

    def do_GET(self):
        self.body()
        self.answer(405, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "use POST"}})

    do_PUT = do_DELETE = do_GET

    def answer(self, status, reply, clean=False):
        if wrong("latin-1") and not clean:
            body = json.dumps(reply, ensure_ascii=False).encode("latin-1", "replace")
        else:
            body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, ValueError)):
            super().handle_error(request, client_address)


if args.list:
    print("\n".join(MISTAKES))
    sys.exit(0)
server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
