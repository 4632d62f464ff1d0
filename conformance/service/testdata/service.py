"""A small service of another make: enough of the API to run syncs of datasets,
kept in dictionaries, its SQL done by sqlite3. It is written from the outside in
and shares nothing with the reference service. Arguments name the mistakes that
it makes. The first line that it prints is its address."""

import json
import re
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

MISTAKES = set(sys.argv[1:])
WORKSPACE, PERSONAL = "secret-token:small", "pat_small"
lock = threading.RLock()
tables = {k: {} for k in ("sources", "datasets", "destinations", "syncs", "sync_runs")}
counter = iter(range(1, 1 << 31))


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def add(kind, thing):
    with lock:
        thing["id"] = next(counter)
        thing["created_at"] = now()
        tables[kind][thing["id"]] = thing
    return thing


def find(kind, key):
    thing = tables[kind].get(int(key))
    if thing is None:
        raise Refused(404, "there is no such thing")
    return thing


def page(kind, things, query):
    number = max(1, int(query.get("page", ["1"])[0] or 1))
    size = int(query.get("per_page", ["25"])[0] or 25)
    if "no-clamp" not in MISTAKES:
        size = min(size, 100)
    things = sorted(things, key=lambda t: t["id"], reverse=query.get("order", ["desc"])[0] != "asc")
    last = max(1, -(-len(things) // size))
    return 200, {
        "status": "success",
        "pagination": {
            "total_records": len(things), "per_page": size, "page": number, "last_page": last,
            "prev_page": number - 1 if number > 1 else None,
            "next_page": number + 1 if number < last else None,
        },
        "data": things[(number - 1) * size:number * size],
    }


def call(destination, method, params):
    """One JSON-RPC call; the result, or an exception that says what went wrong."""
    number = "1" if "one-id" in MISTAKES else uuid.uuid4().hex
    envelope = {"jsonrpc": "2.0", "method": method, "params": params, "id": number}
    if "no-version" in MISTAKES:
        del envelope["jsonrpc"]
    request = urllib.request.Request(
        destination["credentials"]["webhook_url"], json.dumps(envelope).encode(),
        {"Content-Type": "application/json", "User-Agent": "small", "Accept": "*/*"}, method="POST")
    token = destination["credentials"].get("auth_token")
    if token:
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request, timeout=20) as answer:
        reply = json.loads(answer.read())
    if reply.get("id") != number and "any-id" not in MISTAKES:
        raise ValueError("unknown error: the answer has another id")
    if "error" in reply:
        raise ValueError("%s %s" % (reply["error"].get("code"), reply["error"].get("message")))
    if not isinstance(reply.get("result"), dict):
        raise ValueError("unknown error: no result")
    return reply["result"]


def test_connection(destination):
    try:
        result = call(destination, "test_connection", {})
        healthy, message = result.get("success") is True, result.get("error_message")
    except (OSError, ValueError) as failure:
        healthy, message = False, str(failure)
    destination["last_test_succeeded"] = healthy
    destination["last_tested_at"] = now()
    destination["last_test_results"] = {"steps": [{
        "step": "test_connection", "status": "passed" if healthy else "failed",
        "error": None if healthy else {"message": message or "the endpoint is not healthy"}}]}


def rows_of(sync):
    dataset = find("datasets", sync["source_attributes"]["object"]["id"])
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    return [dict(r) for r in db.execute(dataset["query"])]


def run(sync, job):
    try:
        execute(sync, job)
        job["status"] = "completed"
    except Exception as failure:  # a run ends, whatever happens
        job.update(status="failed", error_code="RUN_FAILED", error_message=str(failure), error_detail=repr(failure))
    job["completed_at"] = job["updated_at"] = now()
    sync["status"] = "up to date" if job["status"] == "completed" else "failing"


def execute(sync, job):
    destination = find("destinations", sync["destination_attributes"]["connection_id"])
    name = sync["destination_attributes"]["object"]
    known = {o["object_api_name"]: o for o in call(destination, "list_objects", {})["objects"]}
    target = {k: known[name][k] for k in ("object_api_name", "label")}
    fields = {f["field_api_name"]: f for f in call(destination, "list_fields", {"object": target})["fields"]}
    call(destination, "supported_operations", {"object": target})
    speed = call(destination, "get_sync_speed", {})
    size = speed["maximum_batch_size"] * (2 if "big-batches" in MISTAKES else 1)
    key = next(m["to"] for m in sync["mappings"] if m.get("is_primary_identifier"))
    schema = {m["to"]: {"active_identifier": m["to"] == key, "field": fields[m["to"]]} for m in sync["mappings"]}
    records = [{m["to"]: r[m["from"]["data"]] for m in sync["mappings"]} for r in rows_of(sync)]
    wanted = {r[key]: r for r in records if r[key] is not None}
    sent = sync["_sent"]
    changed = [r for k, r in wanted.items() if "sends-all" in MISTAKES or sent.get(k) != r]
    gone = [{key: k} for k in list(sent) if k not in wanted] if sync["operation"] == "mirror" else []
    job.update(source_record_count=len(records), source_record_updates=len(changed), source_record_deletes=len(gone),
               source_record_invalids=len(records) - len(wanted), records_invalid=len(records) - len(wanted))
    for operation, part in (("upsert" if sync["operation"] == "mirror" else sync["operation"], changed), ("delete", gone)):
        for at in range(0, len(part), size):
            deliver(destination, job, sync, {
                "object": target, "operation": operation, "sync_run_id": job["id"], "sync_id": sync["id"], "schema": schema,
            }, part[at:at + size], key)


def deliver(destination, job, sync, plan, batch, key):
    result = call(destination, "sync_batch", {"sync_plan": plan, "records": batch})
    verdicts = {r["identifier"]: r.get("success") is True for r in result["record_results"]}
    for record in batch:
        good = verdicts.get(record[key], "missing-is-success" in MISTAKES)
        job["records_processed"] += 1
        job["records_updated" if good else "records_failed"] += 1
        if good and plan["operation"] == "delete":
            sync["_sent"].pop(record[key], None)
        elif good:
            sync["_sent"][record[key]] = record


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code, body):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        url = urlsplit(self.path)
        try:
            if not url.path.startswith("/api/v1/"):
                raise Refused(404, "there is nothing here")
            if self.headers.get("Authorization") not in ("Bearer " + WORKSPACE, "Bearer " + PERSONAL):
                if not ("open-door" in MISTAKES and self.command == "GET"):
                    raise Refused(401, "the token is missing or unknown")
            body = json.loads(text) if text else {}
            code, reply = route(self.command, url.path[len("/api/v1"):], parse_qs(url.query), body)
            self.answer(code, visible(reply))
        except Refused as refused:
            self.answer(refused.code, {"status": "not_found" if refused.code == 404 else "error", "message": str(refused)})
        except (ValueError, KeyError, TypeError, sqlite3.Error) as failure:
            self.answer(400, {"status": "error", "message": str(failure)})

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = serve


def visible(value):
    """What may be shown: no secret, nothing of our own."""
    if isinstance(value, dict):
        return {k: visible(v) for k, v in value.items() if not k.startswith("_") and k != "credentials"}
    if isinstance(value, list):
        return [visible(v) for v in value]
    return value


def route(method, path, query, body):
    parts = path.strip("/").split("/")
    kind = parts[0]
    if kind not in tables or len(parts) > 1 and not re.fullmatch(r"\d+", parts[1]):
        raise Refused(404, "there is nothing here")
    if len(parts) == 1:
        if method == "GET":
            return page(kind, list(tables[kind].values()), query)
        if method == "POST" and kind != "sync_runs":
            return create(kind, body)
    thing = find(kind, parts[1]) if len(parts) > 1 else None
    if len(parts) == 2 and method == "GET":
        return 200, {"status": "success", "data": thing}
    if len(parts) == 2 and method == "PATCH":
        thing.update(body.get("service_connection") or body)
        thing["updated_at"] = now()
        return 200, {"status": "updated", "data": thing}
    if len(parts) == 2 and method == "DELETE":
        with lock:
            del tables[kind][thing["id"]]
        return 200, {"status": "deleted"}
    if kind == "destinations" and parts[2:] == ["objects"]:
        return page(kind, objects_of(thing), query)
    if kind == "syncs" and parts[2:] == ["trigger"] and method == "POST":
        return trigger(thing)
    if kind == "syncs" and parts[2:] == ["sync_runs"]:
        return page(kind, [r for r in tables["sync_runs"].values() if r["sync_id"] == thing["id"]], query)
    raise Refused(405, "this is not possible here")


def create(kind, body):
    if kind == "syncs":
        sync = add(kind, dict(body, status="ready", updated_at=now(), paused=False, _sent={}))
        return 200, {"status": "created", "data": {"sync_id": sync["id"]}}
    thing = add(kind, dict(body.get("service_connection") or body.get("connection") or body))
    if kind == "destinations":
        thing["connection_details"] = {}
        test_connection(thing)
    return 201, {"status": "created", "data": thing}


def objects_of(destination):
    out = []
    for number, o in enumerate(call(destination, "list_objects", {})["objects"]):
        out.append({"id": number, "full_name": o["object_api_name"], "label": o["label"], "fields": []})
    return out


def trigger(sync):
    job = add("sync_runs", {
        "sync_id": sync["id"], "status": "working", "current_step": "Running sync", "updated_at": now(), "completed_at": None,
        "canceled": False, "full_sync": not sync["_sent"], "error_code": None, "error_message": None, "error_detail": None,
        "records_processed": 0, "records_updated": 0, "records_failed": 0, "records_invalid": 0, "source_record_count": 0,
        "source_record_updates": 0, "source_record_deletes": 0, "source_record_invalids": 0, "scheduled_execution_time": now(),
        "sync_trigger_reason": {"ui_tag": "Manual", "ui_detail": "triggered through the API"},
    })
    threading.Thread(target=run, args=(sync, job), daemon=True).start()
    return 200, {"status": "success", "data": {"sync_run_id": job["id"]}}


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("http://127.0.0.1:%d/api/v1" % server.server_port, flush=True)
server.serve_forever()
