"""The protocol: one JSON-RPC 2.0 call in, one reply out."""

import json
import logging

from batch import sync_batch
from errors import FAILED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError
from schema import OBJECTS, OPERATIONS, SPEED


def _test_connection(params, store):
    try:
        store.check()
    except Exception:
        logging.exception("the store does not answer")
        return {"success": False, "error_message": "the database does not answer"}
    return {"success": True}


def _list_objects(params, store):
    return {"objects": [{key: o[key] for key in ("object_api_name", "label")} for o in OBJECTS]}


def _list_fields(params, store):
    return {"fields": _object(params)["fields"]}


def _supported_operations(params, store):
    _object(params)
    return {"operations": OPERATIONS}


def _sync_batch(params, store):
    return sync_batch(params, _object(params.get("sync_plan")), store)


METHODS = {
    "test_connection": _test_connection,
    "list_objects": _list_objects,
    "list_fields": _list_fields,
    "supported_operations": _supported_operations,
    "get_sync_speed": lambda params, store: SPEED,
    "sync_batch": _sync_batch,
}


def call(body, store):
    """Answer one request body. The note is for the log: no values, no secrets."""
    reply, note = {"jsonrpc": "2.0", "id": None}, {}
    try:
        request = _read(body)
        identity = request.get("id")
        if isinstance(identity, (str, int, float)) and not isinstance(identity, bool):
            reply["id"] = identity
        method, params = request.get("method"), request.get("params", {})
        if request.get("jsonrpc") != "2.0" or not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, 'the request needs "jsonrpc":"2.0" and a method')
        if method not in METHODS:
            raise RpcError(METHOD_NOT_FOUND, "unknown method")
        note["method"] = method
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params must be an object")
        reply["result"] = METHODS[method](params, store)
        if method == "sync_batch":
            note.update(_describe(params["sync_plan"], reply["result"]["record_results"]))
    except RpcError as error:
        reply["error"] = {"code": error.code, "message": error.message}
    except Exception:  # the cause is for the log; the caller repeats the call
        logging.exception("the call failed")
        reply["error"] = {"code": FAILED, "message": "the destination failed; try again"}
    if "error" in reply:
        note["code"] = reply["error"]["code"]
    return reply, note


def _read(body):
    try:
        request = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise RpcError(PARSE_ERROR, "the body is not JSON in UTF-8") from None
    if not isinstance(request, dict):
        raise RpcError(INVALID_REQUEST, "the request must be one object")
    return request


def _no_number(name):
    """JSON has no NaN and no Infinity; Python reads them all the same."""
    raise ValueError(name)


def _object(params):
    target = params.get("object") if isinstance(params, dict) else None
    name = target.get("object_api_name") if isinstance(target, dict) else None
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "the params name no object")
    for candidate in OBJECTS:
        if candidate["object_api_name"] == name:
            return candidate
    raise RpcError(INVALID_PARAMS, "unknown object")


def _describe(plan, results):
    return {
        "object": plan["object"]["object_api_name"],
        "operation": plan["operation"],
        "records": len(results),
        "failed": sum(not result["success"] for result in results),
    }
