"""sync_batch: records into the store, each with its result."""

import hashlib
import json
import sqlite3
import threading

from errors import RPCError
from store import Skip
from values import check


class Batches:
    def __init__(self, endpoint):
        self.endpoint, self.store, self.wrong = endpoint, endpoint.store, endpoint.wrong
        self.hashes = {}
        self.runs = {}

    def plan_of(self, plan):
        """The object, the operation and the active identifier."""
        table, operation = self.endpoint.table_of(plan), plan.get("operation")
        allowed = self.endpoint.tables[table]["operations"]
        if operation == "delete" and self.wrong("mirror-without-delete"):
            raise RPCError(-32602, "unknown operation delete")
        if (operation not in allowed or operation == "mirror") and not (operation == "delete" and "mirror" in allowed):
            raise RPCError(-32602, f"{table} does not allow {operation}")
        identifiers = [f["field_api_name"] for f in self.endpoint.tables[table]["fields"] if f["identifier"]]
        active = next((name for name, s in plan.get("schema", {}).items() if s.get("active_identifier")), None)
        if active not in identifiers:
            raise RPCError(-32602, "the plan has no identifier that the object allows")
        return table, operation, active

    def run(self, params, results=[]):
        if not self.wrong("mutable-default"):
            results = []
        plan, records = params.get("sync_plan"), params.get("records")
        if not isinstance(plan, dict) or not isinstance(records, list):
            raise RPCError(-32602, "sync_plan and records are needed")
        table, operation, active = self.plan_of(plan)
        if self.wrong("emptied-with-each-run") and operation != "delete" and self.runs.get(table) != plan.get("sync_run_id"):
            self.runs[table] = plan.get("sync_run_id")  # each run is a full load
            with self.store.lock:
                self.store.db.execute(f"DELETE FROM {table}")
        if self.wrong("committed-in-a-thread") and operation in ("insert", "upsert"):
            threading.Timer(0.25, self.carry_out, [table, operation, active, records, []]).start()
            results += [{"identifier": r.get(active), "success": True} for r in records]
        elif self.wrong("rolled-back-and-acknowledged"):
            results += self.all_or_nothing(table, operation, active, records)
        elif self.wrong("one-status-for-all"):
            done = self.carry_out(table, operation, active, records, [])
            good = any(r["success"] for r in done)
            results += [{"identifier": r["identifier"], "success": good, **({} if good else {"error_message": "nothing was written"})} for r in done]
        else:
            self.carry_out(table, operation, active, records, results)
        if self.wrong("results-by-key"):
            return {"record_results": {str(r["identifier"]): r for r in results}}
        if self.wrong("results-misnamed"):
            return {"results": results}
        return {"record_results": list(results)}

    def carry_out(self, table, operation, active, records, results):
        if self.wrong("records-from-a-generator"):
            records = (r for r in records if isinstance(r, dict))
            if any(active not in r for r in records):  # and with that the generator is empty
                raise RPCError(-32602, f"every record needs {active}")
        with self.store.lock:
            self.store.db.execute("BEGIN")
            try:
                written = set()
                for record in records:
                    key = str(record.get(active)).lower()
                    if self.wrong("batches-without-doubles") and operation != "delete" and key in written:
                        results.append(self.answered(active, record))
                        continue
                    written.add(key)
                    results.append(self.one(table, operation, active, record))
            except BaseException:
                self.store.db.execute("ROLLBACK")
                raise
            if self.wrong("update-not-committed") and operation == "update":
                self.store.db.execute("ROLLBACK")  # as a session that is closed without a commit
            else:
                self.store.db.execute("COMMIT")
        return results

    def one(self, table, operation, active, record):
        try:
            self.verify(table, operation, active, record)
            if self.wrong("unchanged-rows-skipped") and operation != "delete":
                mark = hashlib.md5(json.dumps(record, sort_keys=True).encode()).hexdigest()
                if self.hashes.get((table, record[active])) == mark:
                    return self.answered(active, record)
                self.hashes[table, record[active]] = mark
            self.store.write(table, operation, active, record)
        except sqlite3.IntegrityError as error:
            if self.wrong("errors-passed-over"):
                return self.answered(active, record)
            return self.answered(active, record, f"a record with this {str(error).rsplit('.', 1)[-1]} already exists")
        except sqlite3.Error as error:
            if self.wrong("sql-by-f-string") or self.wrong("empty-set-clause"):
                raise RPCError(-32000, str(error)) from error
            return self.answered(active, record, "the value cannot be stored")
        except ValueError as error:
            if self.wrong("errors-passed-over") and not isinstance(error, Skip):
                return self.answered(active, record)
            if self.wrong("exceptions-are-pages") and not isinstance(error, Skip):
                raise
            return self.answered(active, record, str(error))
        return self.answered(active, record)

    def verify(self, table, operation, active, record):
        """Raises ValueError when a record cannot be written, whatever is stored."""
        fields = self.store.fields(table)
        if self.wrong("everything-refused"):
            raise ValueError("the API key may not write")
        if self.wrong("inserts-refused") and operation == "insert" or self.wrong("deletes-refused") and operation == "delete":
            raise ValueError(f"{operation} is not permitted")
        if record.get(active) is None:
            if self.wrong("key-not-demanded"):
                return
            raise ValueError(f"{active} is missing")
        check(fields[active], record[active])
        if operation == "delete" and not self.wrong("delete-wants-whole-records"):
            return
        if operation == "delete":
            for name, f in fields.items():
                if f["required"] and record.get(name) is None:
                    raise ValueError(f"{name} is required")
        for name, value in record.items():
            if name not in fields:
                raise ValueError(f"there is no field {name}")
            check(fields[name], value)
            if self.wrong("other-scripts-refused") and isinstance(value, str) and not value.isascii():
                raise ValueError(f"{name}: ordinal not in range(128)")
            if self.wrong("every-null-refused") and value is None:
                raise ValueError(f"{name} must not be null")
            self.endpoint.refuse(table, operation, fields[name], value)
        self.endpoint.refuse_record(table, operation, active, record)

    def all_or_nothing(self, table, operation, active, records):
        """One transaction for the batch; the results are made on the way."""
        results, broken = [], False
        with self.store.lock:
            self.store.db.execute("BEGIN")
            for record in records:
                result = self.one(table, operation, active, record)
                broken = broken or not result["success"] and operation != "delete"
                results.append(result)
            self.store.db.execute("ROLLBACK" if broken else "COMMIT")
        return results

    def answered(self, active, record, why=None):
        value = record.get(active)
        if self.wrong("keys-stripped") and isinstance(value, str):
            value = value.strip()
        if self.wrong("keys-through-a-data-frame") and isinstance(value, int):
            value = float(value)  # a column with an empty cell is one of floats
        name = "id" if self.wrong("identifier-misnamed") else "identifier"
        if why is not None:
            return self.endpoint.failed({name: value, "success": False, "error_message": why})
        return self.endpoint.succeeded({name: value, "success": "true" if self.wrong("success-as-text") else True})
