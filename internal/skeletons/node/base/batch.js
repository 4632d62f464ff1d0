// sync_batch: checks the plan, then each record, then writes the good ones in one
// transaction. Each record gets a result.
import { RpcError } from './errors.js';
import { operations, speed } from './schema.js';
import { check, Refused } from './values.js';

// The operations of a batch. A mirror sync sends "upsert" and "delete" batches.
const batchOperations = new Set(operations.flatMap((name) => (name === 'mirror' ? ['upsert', 'delete'] : [name])));

export async function syncBatch(params, object, store) {
  const plan = readPlan(params.sync_plan, object);
  const records = params.records;
  if (!Array.isArray(records)) throw new RpcError(-32602, 'records must be a list');
  if (records.length > speed.maximum_batch_size) {
    throw new RpcError(-32602, `${records.length} records are more than the maximum_batch_size of ${speed.maximum_batch_size}`);
  }
  const results = records.map((record) => readRecord(plan, record));
  const good = results.filter((result) => !result.error);
  const errors = await store.write(plan, good); // for each record null, or why it was not written
  good.forEach((result, i) => (result.error = errors[i]));
  return {
    record_results: results.map(({ identifier, error }) =>
      error ? { identifier, success: false, error_message: error } : { identifier, success: true },
    ),
  };
}

// readPlan takes everything from the request: the next batch may come from another
// sync, or reach another process.
function readPlan(plan, object) {
  if (!batchOperations.has(plan.operation)) {
    throw new RpcError(-32602, `${object.object_api_name} does not take the operation ${plan.operation}`);
  }
  const mapped = Object.entries(plan.schema ?? {});
  const keys = mapped.filter(([, entry]) => entry?.active_identifier === true).map(([name]) => name);
  if (keys.length !== 1) throw new RpcError(-32602, 'exactly one field of the schema must be the active identifier');
  const fields = mapped.map(([name]) => {
    const field = object.fields.find((f) => f.field_api_name === name);
    if (!field) throw new RpcError(-32602, `${object.object_api_name} has no field ${name}`);
    return field;
  });
  const key = fields.find((f) => f.field_api_name === keys[0]);
  if (!key.identifier) throw new RpcError(-32602, `${keys[0]} is not an identifier of ${object.object_api_name}`);
  return { object, operation: plan.operation, key: keys[0], fields };
}

// readRecord keeps what the plan maps. A field that the record leaves out is left
// alone; null empties it. To delete a record its identifier is enough.
function readRecord(plan, record) {
  const identifier = record?.[plan.key] ?? null;
  const values = {};
  try {
    if (record === null || typeof record !== 'object' || Array.isArray(record)) throw new Refused('the record is not an object');
    for (const field of plan.fields) {
      const name = field.field_api_name;
      if (name !== plan.key && (plan.operation === 'delete' || !Object.hasOwn(record, name))) continue;
      values[name] = check(field, record[name]);
    }
    return { identifier, values };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { identifier, values, error: error.message };
  }
}
