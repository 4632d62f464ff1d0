"""Keeps records in memory, for trying things out: they are gone when the process
ends, and no second process sees them."""

import threading

from schema import OBJECTS


class Store:
    """Tables of records by identifier."""

    def __init__(self):
        self._lock = threading.Lock()
        self._tables = {target["object_api_name"]: {} for target in OBJECTS}

    def check(self):
        """Raise when records cannot be stored."""

    def write(self, plan, records):
        """Write all records in one transaction: no other batch runs meanwhile."""
        table = self._tables[plan.target["object_api_name"]]
        with self._lock:
            return [_write(table, plan.operation, values[plan.key], values) for values in records]

    def read(self, target, key, identifiers):
        """Give what is stored under the identifiers."""
        table = self._tables[target["object_api_name"]]
        with self._lock:
            return [
                {"identifier": identifier, "count": 1, "fields": table[identifier]}
                for identifier in identifiers
                if identifier in table
            ]

    def close(self):
        """Nothing is open."""


def _write(table, operation, identifier, values):
    """A record that does not qualify is a failure with a message (the convention
    "failure" in destkit.yaml). A delete of what is gone has done its work."""
    stored = table.get(identifier)
    if operation == "delete":
        table.pop(identifier, None)
        return None
    if operation == "insert" and stored is not None:
        return "a record with this identifier exists"
    if operation == "update" and stored is None:
        return "no record with this identifier exists"
    table[identifier] = {**(stored or {}), **values}
    return None
