// The protocol: one JSON-RPC 2.0 call in, one reply out.
import { syncBatch } from './batch.js';
import { RpcError } from './errors.js';
import { parse } from './json.js';
import { objects, operations, speed } from './schema.js';

const methods = {
  async test_connection(params, store) {
    try {
      await store.check();
      return { success: true };
    } catch (error) {
      console.error(error);
      return { success: false, error_message: 'the database does not answer' };
    }
  },
  list_objects: () => ({ objects: objects.map(({ object_api_name, label }) => ({ object_api_name, label })) }),
  list_fields: (params) => ({ fields: objectOf(params).fields }),
  supported_operations: (params) => (objectOf(params), { operations }),
  get_sync_speed: () => speed,
  sync_batch: (params, store) => syncBatch(params, objectOf(params.sync_plan), store),
};

// call answers one request body. The note is for the log: no values, no secrets.
export async function call(body, store) {
  const note = {};
  let id = null;
  try {
    const request = read(body);
    if (typeof request.id === 'string' || typeof request.id === 'number' || typeof request.id === 'bigint') id = request.id;
    if (request.jsonrpc !== '2.0' || typeof request.method !== 'string') {
      throw new RpcError(-32600, 'the request needs "jsonrpc":"2.0" and a method');
    }
    if (!Object.hasOwn(methods, request.method)) throw new RpcError(-32601, 'unknown method');
    note.method = request.method;
    const params = request.params ?? {};
    if (typeof params !== 'object' || Array.isArray(params)) throw new RpcError(-32602, 'params must be an object');
    const result = await methods[request.method](params, store);
    if (request.method === 'sync_batch') Object.assign(note, describe(params, result));
    return { reply: { jsonrpc: '2.0', id, result }, note };
  } catch (error) {
    const known = error instanceof RpcError;
    if (!known) console.error(error); // the cause is for the log; the caller repeats the call
    const { code, message } = known ? error : new RpcError(-32000, 'the destination failed; try again');
    return { reply: { jsonrpc: '2.0', id, error: { code, message } }, note: { ...note, code } };
  }
}

function read(body) {
  let request;
  try {
    request = parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RpcError(-32700, 'the body is not JSON in UTF-8');
  }
  if (request === null || typeof request !== 'object' || Array.isArray(request)) {
    throw new RpcError(-32600, 'the request must be one object');
  }
  return request;
}

function objectOf(params) {
  const name = params?.object?.object_api_name;
  const object = objects.find((o) => o.object_api_name === name);
  if (!object) throw new RpcError(-32602, typeof name === 'string' ? 'unknown object' : 'the params name no object');
  return object;
}

const describe = ({ sync_plan: plan }, { record_results: results }) => ({
  object: plan.object.object_api_name,
  operation: plan.operation,
  records: results.length,
  failed: results.filter((result) => !result.success).length,
});
