"""Keeps records in a SQLite file, one table for each object."""

import json
import os
import sqlite3
import threading

from schema import OBJECTS

COLUMNS = {
    "boolean": "INTEGER",
    "decimal": "TEXT",  # as it was sent: REAL would round it
    "float": "REAL",
    "integer": "INTEGER",
    "date": "TEXT",
    "date_time": "TEXT",
    "string": "TEXT",
}


class Store:
    """One connection: SQLite has one writer at a time anyway."""

    def __init__(self, file=None):
        self._lock = threading.Lock()
        self._db = sqlite3.connect(
            file or os.environ.get("DATABASE") or "records.db",
            check_same_thread=False,
            isolation_level=None,  # transactions begin where write says so
            timeout=10,
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        for target in OBJECTS:
            columns = ", ".join(_column(field) for field in target["fields"])
            self._db.execute(f"CREATE TABLE IF NOT EXISTS {_name(target['object_api_name'])} ({columns})")

    def check(self):
        """Raise when records cannot be stored."""
        with self._lock:
            self._db.execute("SELECT 1")

    def write(self, plan, records):
        """Write all records in one transaction. What a constraint of a table refuses
        is the failure of that record alone."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                errors = [self._write(plan, values) for values in records]
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        return errors

    def _write(self, plan, values):
        """A record that does not qualify is a failure with a message (the convention
        "failure" in destkit.yaml). A delete of what is gone has done its work."""
        stored = [json.dumps(v) if isinstance(v, list) else v for v in values.values()]
        if plan.operation == "update":
            stored.append(values[plan.key])  # after WHERE
        try:
            changed = self._db.execute(_statement(plan, tuple(values)), stored).rowcount
        except sqlite3.IntegrityError:
            return "a constraint of the table refuses this record"
        if plan.operation == "insert" and changed == 0:
            return "a record with this identifier exists"
        if plan.operation == "update" and changed == 0:
            return "no record with this identifier exists"
        return None

    def read(self, target, key, identifiers):
        """Give what is stored under the identifiers."""
        fields, found = target["fields"], []
        columns = ", ".join(_name(field["field_api_name"]) for field in fields)
        query = f"SELECT {columns} FROM {_name(target['object_api_name'])} WHERE {_name(key)} = ?"
        with self._lock:
            for identifier in identifiers:
                rows = self._db.execute(query, [identifier]).fetchall()
                if rows:
                    found.append({"identifier": identifier, "count": len(rows), "fields": _record(fields, rows[0])})
        return found

    def close(self):
        """Close the file."""
        self._db.close()


def _name(text):
    """Quote a name of the schema; nothing from a request ever gets into a statement."""
    return '"' + text.replace('"', '""') + '"'


def _column(field):
    kind = "TEXT" if field["array"] else COLUMNS[field["type"]]
    if field["identifier"]:
        kind += " NOT NULL UNIQUE"
    elif field["required"]:
        kind += " NOT NULL"
    return f"{_name(field['field_api_name'])} {kind}"


def _statement(plan, columns):
    table, key = _name(plan.target["object_api_name"]), _name(plan.key)
    if plan.operation == "delete":
        return f"DELETE FROM {table} WHERE {key} = ?"
    names = [_name(column) for column in columns]
    if plan.operation == "update":
        return f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in names)} WHERE {key} = ?"
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)}) ON CONFLICT ({key}) DO "
    if plan.operation == "insert":
        return insert + "NOTHING"
    return insert + f"UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}"


def _record(fields, row):
    record = {}
    for field, value in zip(fields, row):
        if value is not None and field["array"]:
            value = json.loads(value)
        elif value is not None and field["type"] == "boolean":
            value = bool(value)
        record[field["field_api_name"]] = value
    return record
