"""The six methods. One function for each, as a first version has them."""

import hmac
import itertools
import os
import sqlite3

from db import Database
from habits import HABITS
from tables import tables
from writing import Writer

TOKEN = os.environ.get("ENDPOINT_TOKEN", "")


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


class App:
    def __init__(self, names, folder):
        self.names, self.tables = names, tables()
        self.speed = {"maximum_batch_size": 200, "maximum_parallel_batches": 4, "maximum_records_per_second": 20000}
        self.calls = itertools.count(1)
        # Habits replace these.
        self.shown = lambda f, value: value  # how the read-back shows a value
        self.results = lambda results: results
        self.absent = None  # what deleting an absent record is refused with
        for name in names:
            HABITS.get(name, lambda app: None)(self)
        self.db = Database(self, folder)
        self.writer = Writer(self)

    def wrong(self, name):
        return name in self.names

    habit = wrong

    def admitted(self, header, code):
        if self.wrong("url-in-errors") and code != "c0de-In-The-URL":
            return False
        return hmac.compare_digest(header.encode("latin-1", "replace"), f"Bearer {TOKEN}".encode())

    def table(self, params):
        name = (params.get("object") or {}).get("object_api_name") if isinstance(params.get("object"), dict) else None
        if not isinstance(name, str) or name not in self.tables:
            raise Failure(-32602, "unknown object")
        return name

    def test_connection(self, params):
        return {"success": True}

    def list_objects(self, params):
        return {"objects": [{"object_api_name": name, "label": table["label"]} for name, table in self.tables.items()]}

    def list_fields(self, params):
        return {"fields": self.tables[self.table(params)]["fields"]}

    def supported_operations(self, params):
        return {"operations": self.tables[self.table(params)]["operations"]}

    def get_sync_speed(self, params):
        return self.speed

    def sync_batch(self, params):
        plan, records = params.get("sync_plan"), params.get("records")
        if not isinstance(plan, dict) or not isinstance(records, list):
            raise Failure(-32602, "sync_plan and records are required")
        name, operation = self.table(plan), plan.get("operation")
        offered = self.tables[name]["operations"]
        if operation not in offered and not (operation == "delete" and "mirror" in offered) or operation == "mirror":
            raise Failure(-32602, f"{operation} is not supported")
        keys = [n for n, entry in (plan.get("schema") or {}).items() if isinstance(entry, dict) and entry.get("active_identifier")]
        fields = {f["field_api_name"]: f for f in self.tables[name]["fields"]}
        if len(keys) != 1 or keys[0] not in fields or not fields[keys[0]]["identifier"]:
            raise Failure(-32602, "the plan needs one active identifier")
        if operation == "delete" and len(records) > 30 and self.wrong("dies-in-delete-batch"):
            os._exit(137)  # one query for each record, all at once, and the container has 64 MB
        results = self.writer.batch(name, fields, operation, keys[0], records)
        return {"record_results": self.results(results)}

    METHODS = ("test_connection", "list_objects", "list_fields", "supported_operations", "get_sync_speed", "sync_batch")

    def answer(self, header, code, url, message):
        """The HTTP status and the reply to one call; None is the page of the platform."""
        reply = {"jsonrpc": "2.0", "id": message.get("id") if isinstance(message, dict) else None}

        def failed(status, number, text):
            if self.wrong("url-in-errors"):
                text = f"{text} for url: http://127.0.0.1{url}"  # as requests words it
            return status, {**reply, "error": {"code": number, "message": text}}

        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
            return failed(200, -32600, "not a JSON-RPC 2.0 request")
        if not self.admitted(header, code):
            return failed(401, -32000, "wrong token")
        method, params = message["method"], message.get("params", {})
        known = [m for m in self.METHODS if not (m == "get_sync_speed" and self.wrong("method-missing"))]
        if method not in known:
            return failed(200, -32601, f"no method {method[:60]}")
        if not isinstance(params, dict):
            return failed(200, -32602, "params must be an object")
        try:
            result = getattr(self, method)(params)
        except Failure as failure:
            return failed(200, failure.code, failure.message)
        except sqlite3.OperationalError as error:
            if self.wrong("identifiers-alone"):
                return 502, None
            return failed(200, -32000, str(error))
        status = 200
        if method == "sync_batch":
            if self.wrong("status-422-with-results") and not all(r["success"] for r in result["record_results"]):
                status = 422
            if self.wrong("batch-number-for-id"):
                reply["id"] = self.db.log_batch(len(result["record_results"]))
        return status, {**reply, "result": result}
