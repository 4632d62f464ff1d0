// Tests of the endpoint over HTTP: node --test
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse, stringify } from './json.ts';
import type { Json } from './json.ts';
import { speed } from './schema.ts';
import { start } from './server.ts';

const token = 'test-token';
const folder = mkdtempSync(join(tmpdir(), 'destination-'));
let endpoint: Awaited<ReturnType<typeof start>>;

before(async () => {
  process.env.DATABASE = join(folder, 'test.db'); // the records of a store with a file
  endpoint = await start({ token, port: 0, hooksPort: 0, log: () => {} });
});
after(async () => {
  await endpoint.close();
  rmSync(folder, { recursive: true });
});

async function post(body: string, headers: Record<string, string> = { authorization: `Bearer ${token}` }): Promise<Json> {
  const response = await fetch(endpoint.url, { method: 'POST', headers, body });
  return { status: response.status, ...parse(await response.text()) };
}

const call = (method: string, params: object = {}) => post(stringify({ jsonrpc: '2.0', method, params, id: '1' }));

const sync = (object: string, operation: string, key: string, records: [object, ...object[]]) =>
  call('sync_batch', {
    sync_plan: {
      object: { object_api_name: object, label: object },
      operation,
      schema: Object.fromEntries(Object.keys(records[0]).map((name) => [name, { active_identifier: name === key }])),
    },
    records,
  });

async function stored(object: string, key: string, identifiers: unknown[]): Promise<Json[]> {
  const body = stringify({ object, identifier_field: key, identifiers });
  const response = await fetch(`${endpoint.hooksUrl}/readback`, { method: 'POST', body });
  return parse(await response.text()).records.map((record: Json) => record.fields);
}

const outcomes = (reply: Json) => reply.result.record_results.map((result: Json) => result.success);

test('planning', async () => {
  assert.deepEqual((await call('test_connection')).result, { success: true });
  const { objects } = (await call('list_objects')).result;
  for (const object of objects) {
    const { fields } = (await call('list_fields', { object })).result;
    assert.ok(fields.some((field: Json) => field.identifier && field.required));
    assert.ok((await call('supported_operations', { object })).result.operations.includes('upsert'));
  }
  assert.deepEqual((await call('get_sync_speed')).result, speed);
});

test('errors have the codes of JSON-RPC', async () => {
  assert.equal((await post('{"jsonrpc"')).error.code, -32700);
  assert.equal((await post('{"id":"1"}')).error.code, -32600);
  assert.equal((await call('toString')).error.code, -32601);
  assert.equal((await call('list_fields')).error.code, -32602);
});

test('the token is needed', async () => {
  const wrong: Record<string, string>[] = [{}, { authorization: 'Bearer wrong' }, { authorization: `Basic ${token}` }];
  for (const headers of wrong) {
    assert.equal((await post('{}', headers)).status, 401);
  }
});

test('each operation does what its name says', async () => {
  const ada = { email: 'ada@example.com', name: 'Ada' };
  assert.deepEqual(outcomes(await sync('contact', 'update', 'email', [ada])), [false]);
  assert.deepEqual(outcomes(await sync('contact', 'insert', 'email', [ada, ada])), [true, false]);
  assert.deepEqual(outcomes(await sync('contact', 'update', 'email', [{ email: ada.email, age: 36 }])), [true]);
  const [record] = await stored('contact', 'email', [ada.email]);
  assert.deepEqual([record.name, record.age], ['Ada', 36]);
  assert.deepEqual(outcomes(await sync('contact', 'upsert', 'email', [{ email: ada.email, name: null }])), [true]);
  assert.equal((await stored('contact', 'email', [ada.email]))[0].name, null);
  assert.deepEqual(outcomes(await sync('contact', 'delete', 'email', [ada])), [true]);
  assert.deepEqual(await stored('contact', 'email', [ada.email]), []);
});

test('a bad record does not stop the others', async () => {
  const records: [Json, Json] = [{ email: 'a@example.com', birthday: '2023-02-30' }, { email: 'b@example.com', birthday: '2024-02-29' }];
  assert.deepEqual(outcomes(await sync('contact', 'upsert', 'email', records)), [false, true]);
  assert.equal((await stored('contact', 'email', records.map((r) => r.email))).length, 1);
  assert.deepEqual(outcomes(await sync('contact', 'delete', 'email', records.map(({ email }) => ({ email })) as [object])), [true, true]);
});

test('integers of 64 bits are kept', async () => {
  const ids = [9007199254740992n, 9007199254740993n, 9223372036854775807n, -9223372036854775808n];
  const records = ids.map((id) => ({ account_id: id, employees: id })) as [object, ...object[]];
  const reply = await sync('account', 'upsert', 'account_id', records);
  assert.deepEqual(reply.result.record_results.map((result: Json) => result.identifier), ids);
  assert.deepEqual((await stored('account', 'account_id', ids)).map((record) => record.employees), ids);
  assert.deepEqual(outcomes(await sync('account', 'delete', 'account_id', records)), [true, true, true, true]);
});

test('limits are held', async () => {
  const records = Array.from({ length: speed.maximum_batch_size + 1 }, (_, i) => ({ account_id: i })) as [object, ...object[]];
  assert.equal((await sync('account', 'upsert', 'account_id', records)).error.code, -32602);
  assert.equal((await post(' '.repeat(17 * 1024 * 1024))).status, 413);
});
