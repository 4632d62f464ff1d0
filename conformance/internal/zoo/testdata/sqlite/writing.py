"""sync_batch: each record on its way into the tables, and its result."""

import contextlib
import sqlite3
import threading

from db import owner_of, quoted
from fits import problem
from values import key_of, to_column


class Refused(Exception):
    """A record that is not written."""


class Writer:
    def __init__(self, app):
        self.app, self.wrong = app, app.wrong
        self.lock = threading.Lock()
        self.held = []  # records to try again
        self.seen = {}  # the last values of each row

    def batch(self, name, fields, operation, key, records):
        results = []
        turn = self.lock if self.app.habit("one-writer") else contextlib.nullcontext()
        with turn, self.app.db.open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                self.again(db, name, fields, operation, key)
                for part in self.parts(records):
                    results += self.part(db, name, fields, operation, key, part)
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise
        return results

    def parts(self, records):
        """What is written in one go."""
        most = self.app.speed["maximum_batch_size"]
        if not self.wrong("results-doubled-when-full"):
            return [records]
        parts, part = [], []
        for record in records:
            part.append(record)
            if len(part) == most:
                parts.append(part)  # and it is not emptied
        if part:
            parts.append(part)
        return parts

    def again(self, db, name, fields, operation, key):
        """What was refused before is tried again without the value that was wrong."""
        held, self.held = self.held, []
        if self.wrong("refused-records-tried-again") and operation != "delete":
            for held_name, record in held:
                with contextlib.suppress(Refused, sqlite3.Error):
                    if held_name == name and record.get(key):
                        blanks = {n: "" for n, f in fields.items() if f["required"]}
                        self.save(db, name, fields, "upsert", key, {**blanks, **record})
            return
        self.held = held

    def part(self, db, name, fields, operation, key, records):
        alike = all(isinstance(r, dict) and r.keys() == records[0].keys() for r in records)
        if self.wrong("999-variables") and operation == "upsert" and len(records) > 1 and alike:
            return self.bulk(db, name, fields, key, records)
        if self.wrong("first-record-alone") and len(records) == 1 and operation == "upsert" and self.fits(fields, key, operation, records[0]) == "":
            record = records[0]
            if not self.rows(db, name, key, record):
                self.save(db, name, fields, "insert", key, record)
            return [{"identifier": record[key], "success": True}]
        results = []
        if self.wrong("removed-while-iterating"):
            done, left = [], list(records)
            for record in left:
                done.append(self.one(db, name, fields, operation, key, record))
                left.remove(record)
            return done + [{"identifier": r.get(key), "success": False, "error_message": "not processed"} for r in left]
        for record in records:
            result = self.one(db, name, fields, operation, key, record)
            if self.wrong("results-without-identifier"):
                del result["identifier"]
            results.append(result)
        return results

    def one(self, db, name, fields, operation, key, record):
        record = record if isinstance(record, dict) else {}
        result = {"identifier": record.get(key), "success": True}
        db.execute("SAVEPOINT record")
        try:
            why = self.fits(fields, key, operation, record)
            if why:
                self.hold(name, fields, key, record)
                raise Refused(why)
            if operation == "delete":
                self.delete(db, name, key, record)
            else:
                self.save(db, name, fields, operation, key, record)
            db.execute("RELEASE record")
        except (Refused, sqlite3.Error, ValueError) as error:
            if isinstance(error, sqlite3.OperationalError) and self.wrong("identifiers-alone"):
                raise
            db.execute("ROLLBACK TO record")
            db.execute("RELEASE record")
            result.update(success=False, error_message=str(error))
        return result

    def fits(self, fields, key, operation, record):
        if record.get(key) is None:
            return f"{key} is missing"
        for n, value in record.items():
            if operation == "delete" and n != key:
                continue
            why = problem(fields[n], value) if n in fields else f"no field {n}"
            if why:
                return why
        return ""

    def hold(self, name, fields, key, record):
        if self.wrong("refused-records-tried-again") and isinstance(record.get(key), str):
            self.held.append((name, {n: v for n, v in record.items() if n in fields and problem(fields[n], v) == ""}))

    def rows(self, db, name, key, record, operation=""):
        """The rows that a record is about."""
        alive = "" if operation == "update" and self.wrong("update-sees-deleted-rows") else " AND deleted_at IS NULL"
        value = key_of(self.wrong, record[key])
        if self.wrong("matched-by-either-key") and name == "devices":
            keys = [n for n in ("serial", "asset_tag") if record.get(n) is not None]
            where = " OR ".join(f"{n} = ?" for n in keys)
            return db.execute(f"SELECT id FROM devices WHERE ({where}){alive}", [record[n] for n in keys]).fetchall()
        return db.execute(f"SELECT id FROM {name} WHERE {quoted(key)} = ?{alive}", [value]).fetchall()

    def save(self, db, name, fields, operation, key, record):
        if self.wrong("row-cache-kept"):
            known = self.seen.get((name, record[key]), {})
            if operation == "upsert":
                record = {**known, **record}
            self.seen[name, record[key]] = {**known, **record}
        if self.wrong("conflict-on-serial") and name == "devices" and operation == "upsert":
            return self.upsert(db, name, fields, "serial", record)
        if self.wrong("identifiers-alone") and operation == "upsert":
            return self.upsert(db, name, fields, key, record)
        rows = self.rows(db, name, key, record, operation)
        if operation == "insert" and rows and not self.wrong("no-unique-index"):
            raise Refused("record already exists")
        if operation == "update" and not rows:
            raise Refused("record not found")
        if rows and operation != "insert":
            self.update(db, name, fields, key, record, rows[0][0])
        else:
            for f in fields.values():
                if f["required"] and record.get(f["field_api_name"]) is None:
                    raise Refused(f"{f['field_api_name']} is required")
            self.insert(db, name, fields, record)
        self.save_lists(db, name, fields, key, record)

    def plain(self, fields, record):
        """Columns and values of what is no list."""
        names = [n for n in record if not fields[n]["array"]]
        return names, [to_column(self.wrong, fields[n], record[n], record) for n in names]

    def column(self, name):
        return name if self.wrong("reserved-word-unquoted") else quoted(name)

    def insert(self, db, name, fields, record):
        names, values = self.plain(fields, record)
        if self.app.habit("deleted-rows-are-kept") or self.wrong("update-sees-deleted-rows"):
            for n in names:  # the key of a deleted row is free again
                if fields[n]["identifier"]:
                    db.execute(f"DELETE FROM {name} WHERE {quoted(n)} = ? AND deleted_at IS NOT NULL", [record[n]])
        verb = "INSERT OR IGNORE" if self.wrong("conflicts-ignored") else "INSERT OR REPLACE" if self.wrong("rows-replaced") else "INSERT"
        db.execute(f"{verb} INTO {name} ({', '.join(map(self.column, names))}) VALUES ({', '.join('?' * len(names))})", values)

    def update(self, db, name, fields, key, record, row):
        if self.wrong("false-values-kept"):
            record = {n: v for n, v in record.items() if v}
        if self.wrong("city-and-notes-swapped") and {"city", "notes"} <= record.keys():
            record = {**record, "city": record["notes"], "notes": record["city"]}
        if self.wrong("identifiers-never-change"):
            record = {n: v for n, v in record.items() if n == key or not fields[n]["identifier"]}
        names, values = self.plain(fields, record)
        if self.wrong("values-in-sql-text"):
            texts = [f"{quoted(n)} = " + ("NULL" if v is None else f"'{v}'" if isinstance(v, str) else repr(v)) for n, v in zip(names, values)]
            db.execute(f"UPDATE {name} SET {', '.join(texts)} WHERE id = {row}")
            return
        assignments = [f"{self.column(n)} = ?" for n in names]
        if self.wrong("points-only-grow") and "points" in names:
            assignments[names.index("points")] = "points = MAX(COALESCE(points, ?1), ?1)".replace("?1", f"?{names.index('points') + 1}")
        where = "id = ?"
        if self.wrong("equal-rows-not-found"):  # the driver counts the rows that have changed
            where += " AND (" + " OR ".join(f"{quoted(n)} IS NOT ?" for n in names) + ")"
            values = [*values, row, *values]
        else:
            values = [*values, row]
        if self.wrong("moments-only-forward") and record.get("last_seen"):
            where += " AND (last_seen IS NULL OR last_seen <= ?)"  # what is older came late
            values.append(record["last_seen"])
        if self.app.habit("equal-rows-not-written"):
            old = db.execute(f"SELECT {', '.join(map(quoted, names))} FROM {name} WHERE id = ?", [row]).fetchone()
            if list(old) == values[:len(names)]:
                return
        changed = db.execute(f"UPDATE {name} SET {', '.join(assignments)} WHERE {where}", values).rowcount
        if self.wrong("equal-rows-not-found") and changed == 0:
            raise Refused("record not found")

    def upsert(self, db, name, fields, conflict, record):
        names, values = self.plain(fields, record)
        changes = ", ".join(f"{quoted(n)} = excluded.{quoted(n)}" for n in names if n != conflict)
        db.execute(f"INSERT INTO {name} ({', '.join(map(quoted, names))}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT ({quoted(conflict)}) DO UPDATE SET {changes}", values)
        self.save_lists(db, name, fields, conflict, record)

    def bulk(self, db, name, fields, key, records):
        """One statement for the good records of a batch."""
        good, results = [], []
        for record in records:
            why = self.fits(fields, key, "upsert", record) or next(
                (f"{n} is required" for n, f in fields.items() if f["required"] and record.get(n) is None and not self.rows(db, name, key, record)), "")
            results.append({"identifier": record.get(key), "success": not why, **({"error_message": why} if why else {})})
            if not why:
                good.append(record)
        if good:
            names = self.plain(fields, good[0])[0]
            columns = ", ".join(map(quoted, names))
            changes = ", ".join(f"{quoted(n)} = excluded.{quoted(n)}" for n in names)
            values = [v for record in good for v in self.plain(fields, record)[1]]
            row = f"({', '.join('?' * len(names))})"
            db.execute(f"INSERT INTO {name} ({columns}) VALUES {', '.join([row] * len(good))} ON CONFLICT ({quoted(key)}) DO UPDATE SET {changes}", values)
        for record in good:
            self.save_lists(db, name, fields, key, record)
        return results

    def save_lists(self, db, name, fields, key, record):
        for n, value in record.items():
            if not fields[n]["array"]:
                continue
            table, owner = f"{name}_{n}", owner_of(db, self.wrong, name, key, record[key])
            if not value and self.wrong("empty-lists-ignored"):
                continue
            if not self.wrong("lists-keep-their-tail"):
                db.execute(f"DELETE FROM {table} WHERE owner = ?", [owner])
            if value == []:
                db.execute(f"REPLACE INTO {table} (owner, position, empty) VALUES (?, 0, 1)", [owner])
            for position, item in enumerate(value or []):
                db.execute(f"REPLACE INTO {table} (owner, position, item) VALUES (?, ?, ?)", [owner, position, item])

    def delete(self, db, name, key, record):
        value = key_of(self.wrong, record[key])
        if self.app.absent and not self.rows(db, name, key, record):
            raise Refused(self.app.absent)
        if self.wrong("key-closes-the-statement"):
            db.execute(f"DELETE FROM {name} WHERE {quoted(key)} = '{value}'")
        elif self.app.habit("deleted-rows-are-kept") or self.wrong("update-sees-deleted-rows"):
            db.execute(f"UPDATE {name} SET deleted_at = datetime('now') WHERE {quoted(key)} = ? AND deleted_at IS NULL", [value])
        else:
            db.execute(f"DELETE FROM {name} WHERE {quoted(key)} = ?", [value])
        if name == "customers" and not self.wrong("tags-survive-a-delete"):
            db.execute("DELETE FROM customers_tags WHERE owner = ?", [value])
