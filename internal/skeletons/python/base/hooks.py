"""Hooks for the judge (destkit conform), apart from the endpoint: they are on a port
of the loopback that is open only when HOOKS_PORT is set. Leave it unset in production.

    /readback          says what is stored
    /break_downstream  makes every call to the store fail, and takes that back
"""

import json

from schema import OBJECTS
from server import Handler


class BreakableStore:
    """The store of an endpoint that is judged."""

    def __init__(self, store):
        self._store, self.broken = store, False

    def _working(self):
        if self.broken:
            raise RuntimeError("the store was broken by a hook")
        return self._store

    def check(self):
        self._working().check()

    def write(self, plan, records):
        return self._working().write(plan, records)


def hooks_handler(store, breakable):
    """Make the handler of the hooks."""

    def readback(question):
        target = next(o for o in OBJECTS if o["object_api_name"] == question["object"])
        key = next(f for f in target["fields"] if f["field_api_name"] == question["identifier_field"])
        records = store.read(target, key["field_api_name"], question["identifiers"])
        return {"records": records, "complete": True}

    def break_downstream(order):
        breakable.broken = order["action"] == "begin"
        return {"ok": True}

    hooks = {"/readback": readback, "/break_downstream": break_downstream}

    class Hooks(Handler):
        def do_POST(self):
            try:
                self.send_json(200, hooks[self.path](json.loads(self.read_body())))
            except Exception as error:
                self.send_json(500, {"ok": False, "message": repr(error)})

    return Hooks
