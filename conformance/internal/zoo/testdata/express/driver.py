"""SQLite for a Node without node:sqlite: reads lines of statements as JSON, and
answers each with its rows or its error."""

import json
import sqlite3
import sys

databases = {}
for line in sys.stdin:
    call = json.loads(line)
    name = call["database"]
    if name not in databases:
        databases[name] = sqlite3.connect(":memory:", isolation_level=None)
    answers = []
    for sql, args in call["statements"]:
        try:
            answers.append({"rows": databases[name].execute(sql, args).fetchall()})
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            answers.append({"error": str(error)})
    print(json.dumps({"id": call["id"], "answers": answers}), flush=True)
