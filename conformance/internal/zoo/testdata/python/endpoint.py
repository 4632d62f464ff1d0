"""One endpoint with its own store: the six methods, and the answer to one call.
Habits change what is declared and what is refused."""

import functools
import hmac
import os
import traceback

from batch import Batches
from errors import RPCError
from habits import HABITS
from schema import field, tables
from store import Store

TOKEN = os.environ.get("ENDPOINT_TOKEN", "")


class Endpoint:
    def __init__(self, names):
        self.wrong = lambda name: name in names
        self.tables = tables(self.wrong)
        self.speed = {"maximum_batch_size": 200, "maximum_parallel_batches": 8, "maximum_records_per_second": 20000}
        # Habits replace these.
        self.refuse = lambda table, operation, f, value: None  # raises ValueError for a value that fits
        self.refuse_record = lambda table, operation, active, record: None
        self.succeeded = lambda result: result
        self.failed = lambda result: result
        self.filled = 0  # rows that are there from the start
        for name in names:
            if name in HABITS:
                HABITS[name](self)
        self.store = Store(self.tables, self.wrong)
        for n in range(self.filled):
            self.store.db.execute("INSERT INTO person (person_key, name, city) VALUES (?, ?, 'Utrecht')", [f"p-{n}", f"Person {n}"])
        self.batches = Batches(self)
        if self.wrong("fields-in-an-lru-cache"):
            self.fields_of = functools.lru_cache(maxsize=None)(self.fields_of)
        self.methods = {
            "test_connection": lambda params: {"ok": True} if self.wrong("ok-for-success") else {"success": True},
            "list_objects": lambda params: {"objects": [{"object_api_name": n, "label": t["label"]} for n, t in self.tables.items()]},
            "list_fields": lambda params: {"fields": self.fields_of(self.table_of(params))},
            "supported_operations": lambda params: {"operations": self.operations_of(self.table_of(params))},
            "get_sync_speed": self.get_sync_speed,
            "sync_batch": self.batches.run,
        }

    def table_of(self, params):
        wanted = params.get("object")
        name = wanted.get("object_api_name") if isinstance(wanted, dict) else None
        if self.wrong("object-by-its-label"):
            label = wanted.get("label") if isinstance(wanted, dict) else None
            name = next((n for n, t in self.tables.items() if t["label"] == label), None)
        if not isinstance(name, str) or name not in self.tables:
            raise RPCError(-32602, "there is no such object")
        return name

    def fields_of(self, name):
        fields = [dict(f) for f in self.tables[name]["fields"]]
        if self.wrong("fields-of-the-first-row"):
            with self.store.lock:
                row = self.store.db.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()
            if row is None:
                return []
        if self.wrong("identifer-as-in-the-prose"):
            for f in fields:
                f["identifer"] = f.pop("identifier")
        if self.wrong("field-listed-twice") and name == "visit":
            fields.append(field("page", "string"))  # a custom field with the name of a standard one
        if self.wrong("types-of-the-database"):
            for f in fields:
                f["type"] = {"string": "varchar", "date_time": "timestamp"}.get(f["type"], f["type"])
        return fields

    def operations_of(self, name):
        operations = self.tables[name]["operations"]
        if self.wrong("object-without-operations") and name == "visit":
            return []  # it is only read from
        if self.wrong("operations-as-a-text"):
            return ",".join(operations)
        if self.wrong("append-offered"):
            return [*operations, "append"]
        return operations

    def get_sync_speed(self, params):
        speed = dict(self.speed)
        if self.wrong("average-of-nothing"):
            durations = []
            speed["average_seconds"] = sum(durations) / len(durations) if durations else float("nan")
        if self.wrong("speed-wants-a-plan"):
            return self.speed if params["sync_plan"]["object"] else None
        return speed

    def admitted(self, header):
        if self.wrong("token-by-its-beginning"):
            return header.startswith("Bearer ") and TOKEN.startswith(header[len("Bearer "):])
        return hmac.compare_digest(header.encode("latin-1", "replace"), f"Bearer {TOKEN}".encode())

    def call(self, header, message):
        """Answers one parsed request: HTTP status and reply, None for an error page."""
        def failure(status, code, text):
            return status, {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}}

        request_id = message.get("id") if isinstance(message, dict) else None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
            return failure(200, -32600, "Invalid Request")
        if not self.admitted(header):
            return failure(401, -32000, "the token is not valid")
        if message["method"] not in self.methods:
            return failure(200, -32601, "Method not found")
        try:
            params = message.get("params", {})
            if not isinstance(params, dict):
                raise RPCError(-32602, "params must be an object")
            return 200, {"jsonrpc": "2.0", "id": request_id, "result": self.methods[message["method"]](params)}
        except RPCError as error:
            if self.wrong("traceback-in-messages"):
                return failure(200, error.code, traceback.format_exc())
            return failure(200, error.code, str(error))
        except (ValueError, KeyError) as error:
            if self.wrong("exceptions-are-pages"):
                return 500, None
            return failure(200, -32603, repr(error))

    def alter_schema(self, question):
        fields = self.tables["person"]["fields"]
        if question["action"] == "begin":
            fields.append(field("nickname", "string"))
        else:
            fields[:] = [f for f in fields if f["field_api_name"] != "nickname"]
        return {"ok": True, "object": "person", "field": "nickname"}
