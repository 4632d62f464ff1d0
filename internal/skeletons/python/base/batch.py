"""sync_batch: checks the plan, then each record, then writes the good ones in one
transaction. Each record gets a result."""

from errors import INVALID_PARAMS, RpcError
from schema import OPERATIONS, SPEED
from values import Refused, check

# The operations of a batch. A mirror sync sends "upsert" and "delete" batches.
BATCH_OPERATIONS = {name for name in OPERATIONS if name != "mirror"}
if "mirror" in OPERATIONS:
    BATCH_OPERATIONS |= {"upsert", "delete"}


class Plan:
    """What a batch does. It comes from the request alone: the next batch may be of
    another sync, or reach another process."""

    def __init__(self, plan, target):
        self.target, self.operation = target, plan.get("operation")
        name = target["object_api_name"]
        if not isinstance(self.operation, str) or self.operation not in BATCH_OPERATIONS:
            raise RpcError(INVALID_PARAMS, f"{name} does not take this operation")
        schema = plan.get("schema")
        if not isinstance(schema, dict) or not all(isinstance(entry, dict) for entry in schema.values()):
            raise RpcError(INVALID_PARAMS, "the plan needs a schema")
        keys = [key for key, entry in schema.items() if entry.get("active_identifier") is True]
        if len(keys) != 1:
            raise RpcError(INVALID_PARAMS, "exactly one field of the schema must be the active identifier")
        self.key = keys[0]
        fields = {field["field_api_name"]: field for field in target["fields"]}
        for mapped in schema:
            if mapped not in fields:
                raise RpcError(INVALID_PARAMS, f"{name} has no field {mapped}")
        self.fields = [fields[mapped] for mapped in schema]
        if not fields[self.key]["identifier"]:
            raise RpcError(INVALID_PARAMS, f"{self.key} is not an identifier of {name}")

    def values(self, record):
        """Give what the plan maps. A field that the record leaves out is left alone;
        null empties it. To delete a record its identifier is enough."""
        if not isinstance(record, dict):
            raise Refused("the record is not an object")
        values = {}
        for field in self.fields:
            name = field["field_api_name"]
            if name == self.key or (self.operation != "delete" and name in record):
                values[name] = check(field, record.get(name))
        return values


def sync_batch(params, target, store):
    """Write a batch and report each record."""
    plan = Plan(params["sync_plan"], target)
    records = params.get("records")
    if not isinstance(records, list):
        raise RpcError(INVALID_PARAMS, "records must be a list")
    most = SPEED["maximum_batch_size"]
    if len(records) > most:
        raise RpcError(INVALID_PARAMS, f"{len(records)} records are more than the maximum_batch_size of {most}")
    errors = [None] * len(records)
    good = {}
    for i, record in enumerate(records):
        try:
            good[i] = plan.values(record)
        except Refused as refused:
            errors[i] = str(refused)
    # The store gives for each record None, or why it was not written.
    for i, error in zip(good, store.write(plan, list(good.values()))):
        errors[i] = error
    return {"record_results": [_result(plan, *pair) for pair in zip(records, errors)]}


def _result(plan, record, error):
    identifier = record.get(plan.key) if isinstance(record, dict) else None
    if error is None:
        return {"identifier": identifier, "success": True}
    return {"identifier": identifier, "success": False, "error_message": error}
