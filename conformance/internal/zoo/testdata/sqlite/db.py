"""The database: a file of SQLite, a connection for each request."""

import contextlib
import itertools
import os
import sqlite3
import threading

from tables import COLUMN
from values import from_column, key_of


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Database:
    def __init__(self, app, folder):
        self.app, self.wrong = app, app.wrong
        self.path = os.path.join(folder, "data.db")
        self.workers, self.turn, self.lock = [], itertools.count(), threading.Lock()
        if self.wrong("a-database-per-worker"):
            # Each worker of the web server has its own memory.
            self.workers = [sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None) for _ in range(2)]
            for db in self.workers:
                self.create(db)
        else:
            with self.open() as db:
                db.execute("PRAGMA journal_mode=WAL")
                self.create(db)

    def create(self, db):
        for name, table in self.app.tables.items():
            columns = []
            for f in table["fields"]:
                if f["array"]:
                    db.execute(f"CREATE TABLE {name}_{f['field_api_name']} (owner TEXT, position INTEGER, item TEXT, empty INTEGER, PRIMARY KEY (owner, position))")
                    continue
                kind = COLUMN.get(f["type"], "TEXT")
                if f["identifier"] and self.wrong("key-column-is-integer"):
                    kind = "INTEGER"
                if f["field_api_name"] == "points" and self.wrong("points-are-text"):
                    kind = "TEXT"
                unique = " UNIQUE" if f["identifier"] and not self.wrong("no-unique-index") else ""
                columns.append(f"{quoted(f['field_api_name'])} {kind}{unique}")
            db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, deleted_at TEXT, {', '.join(columns)})")
        db.execute("CREATE TABLE batches (id INTEGER PRIMARY KEY, records INTEGER)")

    @contextlib.contextmanager
    def open(self):
        """A connection; one that writes begins its transaction itself."""
        if self.workers:
            with self.lock:
                yield self.workers[next(self.turn) % 2]
            return
        db = sqlite3.connect(self.path, timeout=20, isolation_level=None)
        try:
            db.execute("PRAGMA synchronous=OFF")
            if self.wrong("999-variables"):
                db.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)  # as the library of the system has it
            yield db
        finally:
            db.close()

    def log_batch(self, records):
        with self.open() as db:
            return db.execute("INSERT INTO batches (records) VALUES (?)", [records]).lastrowid

    def readback(self, question):
        name, key, records = question["object"], question["identifier_field"], []
        fields = self.app.tables[name]["fields"]
        plain = [f for f in fields if not f["array"]]
        columns = ", ".join(quoted(f["field_api_name"]) for f in plain)
        with self.open() as db:
            for value in question["identifiers"]:
                try:
                    wanted = key_of(self.wrong, value) if self.wrong("keys-folded-everywhere") else value
                    rows = db.execute(f"SELECT {columns} FROM {name} WHERE {quoted(key)} = ? AND deleted_at IS NULL", [wanted]).fetchall()
                except (UnicodeEncodeError, OverflowError):
                    continue
                if not rows:
                    continue
                shown = {f["field_api_name"]: self.app.shown(f, from_column(self.wrong, f, v)) for f, v in zip(plain, rows[0])}
                for f in fields:
                    if f["array"]:
                        shown[f["field_api_name"]] = items(db, name, f["field_api_name"], owner_of(db, self.wrong, name, key, rows[0][0]))
                records.append({"identifier": value, "count": len(rows), "fields": shown})
        return {"records": records, "complete": True}


def owner_of(db, wrong, name, key, value):
    """What the rows of a list name: the key of their record."""
    if wrong("row-ids-used-again"):  # or the number of its row, which SQLite gives to a later one
        return db.execute(f"SELECT id FROM {name} WHERE {quoted(key)} = ?", [value]).fetchone()[0]
    return value


def items(db, name, column, owner):
    """The items of a list; None is no list, and a row without an item an empty one."""
    rows = db.execute(f"SELECT item, empty FROM {name}_{column} WHERE owner = ? ORDER BY position", [owner]).fetchall()
    return [item for item, empty in rows if not empty] if rows else None
