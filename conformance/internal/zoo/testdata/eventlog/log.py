"""The log: a file of JSON lines for each endpoint. What is stored is what a replay of
the lines gives."""

import json
import os
import threading


class Log:
    def __init__(self, path, wrong):
        self.path, self.wrong = path, wrong
        self.file = open(path, "a", encoding="utf-8", buffering=1 << 16)
        self.lock = threading.RLock()
        self.rows, self.gone, self.read, self.lines = {}, {}, 0, 0
        self.applied = 0
        self.seen, self.deletes = set(), []

    def append(self, event):
        line = json.dumps(event, sort_keys=True)
        if self.wrong("same-event-once"):
            if line in self.seen:
                return  # sent again by the caller
            self.seen.add(line)
        self.file.write(line + "\n")
        self.lines += 1
        if not self.wrong("flushed-every-seven") or self.lines % 7 == 0:
            self.file.flush()

    def state(self):
        """The rows by object and key, after the lines that are new."""
        if os.path.getsize(self.path) == self.read:
            return self.rows
        with open(self.path, "rb") as f:
            f.seek(self.read)
            new = f.read()
        new = new[:new.rfind(b"\n") + 1]
        self.read += len(new)
        events = [json.loads(line) for line in new.splitlines()]
        for event in events:
            self.apply(event)
        if self.wrong("deletes-replayed-last"):
            for event in self.deletes:
                self.rows.pop((event["object"], json.dumps(event["key"])), None)
        return self.rows

    def apply(self, event):
        at = event["object"], json.dumps(event["key"])
        self.applied += 1
        if self.wrong("snapshot-forgets-one") and self.applied % 100 == 0:
            return  # the snapshot ends before it, the replay begins behind it
        if event["type"] == "deleted":
            self.deletes.append(event)
            self.gone[at] = self.rows.pop(at, {})
            return
        row = self.rows.get(at)
        if row is None:
            row = self.gone.pop(at, {}) if self.wrong("deleted-state-merged") else {}
        data = event["data"]
        if self.wrong("null-is-no-change"):
            data = {n: v for n, v in data.items() if v is not None}
        self.rows[at] = {**row, **data}
