"""The store: SQLite in memory, a table for each object."""

import sqlite3
import threading

from values import column_type, from_column, to_column


class Skip(ValueError):
    """A record that does not qualify for the operation."""


class Store:
    def __init__(self, tables, wrong):
        self.tables, self.wrong = tables, wrong
        self.lock = threading.RLock()
        self.known = set()  # the keys that inserts have created, for "keys-in-a-cache"
        self.db = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        if wrong("one-table-for-all"):
            tables = {"records": {"fields": self.all_fields()}}
        for name, table in tables.items():
            columns = [f"{f['field_api_name']} {column_type(wrong, f)}" for f in table["fields"]]
            self.db.execute(f"CREATE TABLE {name} (row INTEGER PRIMARY KEY, {', '.join(columns)})")
            for f in table["fields"]:
                if f["identifier"]:
                    self.db.execute(f"CREATE UNIQUE INDEX {name}_{f['field_api_name']} ON {name} ({f['field_api_name']})")

    def table_of(self, name):
        return "records" if self.wrong("one-table-for-all") else name

    def all_fields(self):
        """The columns of one table for every object: one key, and all the rest."""
        found = {"key": {"field_api_name": "key", "type": "string", "array": False, "identifier": True}}
        for table in self.tables.values():
            found.update({f["field_api_name"]: f for f in table["fields"] if not f["identifier"]})
        return list(found.values())

    def column(self, f):
        return "key" if self.wrong("one-table-for-all") and f["identifier"] else f["field_api_name"]

    def fields(self, name):
        return {f["field_api_name"]: f for f in self.tables[name]["fields"]}

    def find(self, table, key, value):
        """The row numbers under a key."""
        if self.wrong("key-looked-up-by-like"):
            found = self.db.execute(f"SELECT row FROM {table} WHERE {key} LIKE ?", [value])
        else:
            found = self.db.execute(f"SELECT row FROM {table} WHERE {key} = ?", [value])
        return [row for (row,) in found]

    def delete(self, table, key, value):
        if self.wrong("delete-by-prefix"):
            self.db.execute(f"DELETE FROM {table} WHERE {key} LIKE ?", [f"{value}%"])
        elif self.wrong("key-looked-up-by-like"):
            self.db.execute(f"DELETE FROM {table} WHERE {key} LIKE ?", [value])
        elif self.wrong("delete-without-where"):
            self.db.execute(f"DELETE FROM {table} WHERE {key} = {key}")  # the parameter was meant
        elif self.wrong("delete-in-every-object"):
            for name, other in self.tables.items():  # everything about a person is erased
                for f in other["fields"]:
                    if f["identifier"]:
                        self.db.execute(f"DELETE FROM {name} WHERE {f['field_api_name']} = ?", [value])
        elif not self.wrong("delete-not-done"):
            self.db.execute(f"DELETE FROM {table} WHERE {key} = ?", [value])

    def write(self, name, operation, active, record):
        """Carries out one record that fits; what does not qualify is a Skip."""
        wrong, table, fields = self.wrong, self.table_of(name), self.fields(name)
        key = to_column(wrong, fields[active], record.get(active))
        if operation == "delete":
            self.delete(table, self.column(fields[active]), key)
            return
        lookup, wanted = active, key
        if wrong("first-identifier-always"):
            lookup = next(n for n, f in fields.items() if f["identifier"])
            wanted = record.get(lookup)
        if wrong("one-table-for-all"):
            lookup, record = "key", {self.column(fields[n]): v for n, v in record.items()}
            fields = {self.column(f): f for f in fields.values()}
        rows = self.find(table, lookup, wanted)
        if operation == "insert" and wrong("keys-in-a-cache"):
            if (table, wanted) in self.known:
                raise Skip("record already exists")
            self.known.add((table, wanted))
        if operation == "insert" and rows:
            if wrong("insert-overwrites"):
                self.update(table, lookup, rows[0], record, fields)
            if wrong("insert-fills-blanks"):
                self.fill(table, rows[0], record, fields)
            raise Skip("record already exists")
        if operation == "update" and not rows:
            raise Skip("record not present")
        if operation == "upsert" and rows and wrong("insert-or-ignore"):
            self.insert(table, record, fields, "INSERT OR IGNORE")
        elif operation == "upsert" and wrong("insert-or-replace"):
            self.insert(table, record, fields, "INSERT OR REPLACE")
        elif rows:
            self.update(table, lookup, rows[0], record, fields)
        else:
            if operation != "update":
                missing = [n for n, f in fields.items() if f["required"] and record.get(n) is None]
                if missing and not wrong("key-not-demanded"):
                    raise ValueError(f"{missing[0]} is required")
            self.insert(table, record, fields, "INSERT")

    def insert(self, table, record, fields, verb):
        names = list(record)
        values = [to_column(self.wrong, fields[n], record[n]) for n in names]
        if self.wrong("sql-by-f-string"):
            texts = ", ".join("NULL" if v is None else f"'{v}'" if isinstance(v, str) else repr(v) for v in values)
            self.db.execute(f"{verb} INTO {table} ({', '.join(names)}) VALUES ({texts})")
            return
        if self.wrong("values-by-position"):
            names = [n for n in fields if n in record]
        self.db.execute(f"{verb} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", values)

    def update(self, table, lookup, row, record, fields):
        names = [n for n in record if n != lookup and not (n == "credit" and self.wrong("update-forgets-a-column"))]
        if not names and not self.wrong("empty-set-clause"):
            return
        values = [to_column(self.wrong, fields[n], record[n]) for n in names]
        assignments = ", ".join(f"{n} = ?" for n in names)
        if self.wrong("nulls-coalesced"):
            assignments = ", ".join(f"{n} = COALESCE(?, {n})" for n in names)
        if self.wrong("update-without-where"):
            self.db.execute(f"UPDATE {table} SET {assignments} WHERE {lookup} = {lookup}", values)  # the parameter was meant
            return
        self.db.execute(f"UPDATE {table} SET {assignments} WHERE row = ?", [*values, row])

    def fill(self, table, row, record, fields):
        """Writes what is empty until now."""
        names = list(record)
        values = [to_column(self.wrong, fields[n], record[n]) for n in names]
        self.db.execute(f"UPDATE {table} SET {', '.join(f'{n} = COALESCE({n}, ?)' for n in names)} WHERE row = ?", [*values, row])

    def readback(self, question):
        table, name = question["object"], question["identifier_field"]
        fields, records = self.fields(table), []
        columns = ", ".join(self.column(f) for f in fields.values())
        with self.lock:
            for value in question["identifiers"]:
                try:
                    rows = self.db.execute(f"SELECT {columns} FROM {self.table_of(table)} WHERE {self.column(fields[name])} = ?", [value]).fetchall()
                except (UnicodeEncodeError, OverflowError):
                    continue  # cannot be stored
                if rows:
                    shown = {n: from_column(self.wrong, fields[n], v) for n, v in zip(fields, rows[0])}
                    records.append({"identifier": value, "count": len(rows), "fields": shown})
        return {"records": records, "complete": True}
