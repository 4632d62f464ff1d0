"""Keeps records in PostgreSQL, one table for each object."""

import json
import os

import psycopg
from psycopg_pool import ConnectionPool

from schema import OBJECTS

COLUMNS = {
    "boolean": "boolean",
    "decimal": "numeric",
    "float": "double precision",
    "integer": "bigint",
    "date": "date",
    "date_time": "timestamptz",
    "string": "text",
}
# What a value may be to blame for: classes of SQLSTATE.
DATA_ERRORS = ("22", "23", "54")
RETRIES = 3  # of a transaction that met another one (class 40)
TABLES_LOCK = 7_283_411  # advisory: one process makes the tables


class Store:
    """A pool of connections, so that batches run in parallel."""

    def __init__(self, url=None):
        url = url or os.environ.get("DATABASE_URL")
        if not url:
            raise ValueError("set DATABASE_URL to the URL of the database")
        # Whoever waits for a connection longer than this is better told to repeat.
        self._pool = ConnectionPool(url, min_size=1, max_size=8, timeout=10, open=False)
        self._pool.open(wait=True, timeout=10)
        with self._pool.connection() as db:
            db.execute("SELECT pg_advisory_xact_lock(%s)", [TABLES_LOCK])  # one process makes them
            for target in OBJECTS:
                columns = ", ".join(_column(field) for field in target["fields"])
                db.execute(f"CREATE TABLE IF NOT EXISTS {_name(target['object_api_name'])} ({columns})")

    def check(self):
        """Raise when records cannot be stored."""
        with self._pool.connection() as db:
            db.execute("SELECT 1")

    def write(self, plan, records):
        """Write all records in one transaction."""
        for attempt in range(RETRIES):
            try:
                with self._pool.connection() as db:
                    return [error for part in _parts(plan, records) for error in _write(db, plan, part)]
            except psycopg.errors.OperationalError as error:
                if (error.sqlstate or "")[:2] != "40" or attempt + 1 == RETRIES:
                    raise

    def read(self, target, key, identifiers):
        """Give what is stored under the identifiers; the database writes the JSON."""
        columns = ", ".join(_shown(field) for field in target["fields"])
        kind = next(COLUMNS[f["type"]] for f in target["fields"] if f["field_api_name"] == key)
        query = (
            f"SELECT {_name(key)}::text, (SELECT to_json(r) FROM (SELECT {columns}) AS r)::text"
            f" FROM {_name(target['object_api_name'])} WHERE {_name(key)} = ANY(%s::text[]::{kind}[])"
        )
        rows = {}
        with self._pool.connection() as db:
            for identifier, record in db.execute(query, [[str(identifier) for identifier in identifiers]]):
                rows.setdefault(identifier, []).append(record)
        return [
            {"identifier": identifier, "count": len(rows[str(identifier)]), "fields": json.loads(rows[str(identifier)][0])}
            for identifier in identifiers
            if str(identifier) in rows
        ]

    def close(self):
        """Close all connections."""
        self._pool.close()


def _parts(plan, records):
    """Cut a batch where a statement must end: it writes a key once, and one set of
    columns."""
    part, keys = [], set()
    for values in records:
        if part and (values[plan.key] in keys or values.keys() != part[0].keys()):
            yield part
            part, keys = [], set()
        part.append(values)
        keys.add(values[plan.key])
    if part:
        yield part


def _write(db, plan, part):
    """Write records by one statement. When the database refuses a value, halve them
    until the record is found, so that it fails alone."""
    try:
        with db.transaction():  # a savepoint
            rows = db.execute(_statement(plan, part[0]), [json.dumps(part)]).fetchall()
    except psycopg.Error as error:
        if (error.sqlstate or "")[:2] not in DATA_ERRORS:
            raise
        if len(part) == 1:
            return ["the database refuses a value of this record"]
        middle = len(part) // 2
        return _write(db, plan, part[:middle]) + _write(db, plan, part[middle:])
    written = {key for (key,) in rows}
    return [None if str(values[plan.key]) in written else _skipped(plan.operation) for values in part]


def _skipped(operation):
    """A record that does not qualify is a failure with a message (the convention
    "failure" in destkit.yaml). A delete of what is gone has done its work."""
    return {
        "insert": "a record with this identifier exists",
        "update": "no record with this identifier exists",
    }.get(operation)


def _statement(plan, values):
    """The records go in as JSON text, which keeps every digit. They are sorted, so
    that parallel batches lock rows in one order."""
    table, key = _name(plan.target["object_api_name"]), _name(plan.key)
    fields = [field for field in plan.fields if field["field_api_name"] in values]
    names = [_name(field["field_api_name"]) for field in fields]
    types = ", ".join(f"{name} {_kind(field)}" for name, field in zip(names, fields))
    rows = f"json_to_recordset(%s::json) AS r({types})"
    if plan.operation == "delete":
        return f"DELETE FROM {table} AS t USING {rows} WHERE t.{key} = r.{key} RETURNING t.{key}::text"
    if plan.operation == "update":
        sets = ", ".join(f"{name} = r.{name}" for name in names)
        return f"UPDATE {table} AS t SET {sets} FROM {rows} WHERE t.{key} = r.{key} RETURNING t.{key}::text"
    insert = f"INSERT INTO {table} AS t ({', '.join(names)}) SELECT {', '.join(names)} FROM {rows} ORDER BY {key} ON CONFLICT ({key}) DO "
    if plan.operation == "insert":
        return insert + f"NOTHING RETURNING t.{key}::text"
    sets = ", ".join(f"{name} = excluded.{name}" for name in names)
    return insert + f"UPDATE SET {sets} RETURNING t.{key}::text"


def _name(text):
    """Quote a name of the schema; nothing from a request ever gets into a statement."""
    return '"' + text.replace('"', '""').replace("%", "%%") + '"'


def _kind(field):
    return COLUMNS[field["type"]] + ("[]" if field["array"] else "")


def _column(field):
    kind = _kind(field)
    if field["identifier"]:
        kind += " NOT NULL UNIQUE"
    elif field["required"]:
        kind += " NOT NULL"
    return f"{_name(field['field_api_name'])} {kind}"


def _shown(field):
    """Decimals are text on the wire, and moments have a Z."""
    name, shown = _name(field["field_api_name"]), _name(field["field_api_name"])
    if field["type"] == "decimal":
        shown += "::text[]" if field["array"] else "::text"
    elif field["type"] == "date_time" and not field["array"]:
        shown = f"""replace(to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z')"""
    return f"{shown} AS {name}"
