"""Hooks for the judge (destkit conform), apart from the endpoint: they are on a port
of the loopback that is open only when HOOKS_PORT is set. Leave it unset in production.

    /readback          says what is stored
    /break_downstream  makes every call to the store fail, and takes that back
    /alter_schema      changes the label of a field, and takes that back
    /rotate_token      puts a new token into force, and the old one back
    /restart           closes the store and opens it again
"""

import json
import secrets

from schema import OBJECTS
from server import Handler
from store import Store

ALTERED = " (altered)"


class JudgedStore:
    """The store of an endpoint that is judged."""

    def __init__(self):
        self._store, self.broken = Store(), False

    def restart(self):
        """Close the store and open it again."""
        self.close()
        self._store = Store()

    def _working(self):
        if self.broken:
            raise RuntimeError("the store was broken by a hook")
        return self._store

    def check(self):
        self._working().check()

    def write(self, plan, records):
        return self._working().write(plan, records)

    def read(self, target, key, identifiers):
        return self._store.read(target, key, identifiers)

    def close(self):
        self._store.close()


def hooks_handler(store, secret, token):
    """Make the handler of the hooks."""

    def readback(question):
        target = next(o for o in OBJECTS if o["object_api_name"] == question["object"])
        key = next(f for f in target["fields"] if f["field_api_name"] == question["identifier_field"])
        records = store.read(target, key["field_api_name"], question["identifiers"])
        return {"records": records, "complete": True}

    def break_downstream(order):
        store.broken = order["action"] == "begin"
        return {"ok": True}

    def alter_schema(order):
        target = next(o for o in OBJECTS if o["object_api_name"] == order["object"])
        field = target["fields"][0]
        field["label"] = field["label"].replace(ALTERED, "") + (ALTERED if order["action"] == "begin" else "")
        return {"ok": True, "object": order["object"], "field": field["field_api_name"]}

    def rotate_token(order):
        fresh = secrets.token_urlsafe() if order["action"] == "begin" else token
        secret.set(fresh)
        return {"ok": True, "token": fresh}

    def restart(order):
        if order["action"] == "begin":
            store.restart()
        return {"ok": True}

    hooks = {f"/{hook.__name__}": hook for hook in (readback, break_downstream, alter_schema, rotate_token, restart)}

    class Hooks(Handler):
        def do_POST(self):
            try:
                self.send_json(200, hooks[self.path](json.loads(self.read_body())))
            except Exception as error:
                self.send_json(500, {"ok": False, "message": repr(error)})

    return Hooks
