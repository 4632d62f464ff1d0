// A custom destination in plain Node. `--mistake NAME` builds in one mistake
// that people make; `none` is clean, `--list` prints the names. It prints its
// port and ends when its standard input does. The token stands in
// ENDPOINT_TOKEN. Beside the protocol it answers /readback and
// /hooks/alter_schema, for the test alone.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const MISTAKES = [
  'write-not-awaited', 'promise-race', 'html-for-unknown-method', 'batch-fails-as-a-whole', 'always-success',
  'identifier-lowercased', 'identifier-as-string', 'json-parse-integers', 'failures-filtered-out', 'body-limit-100kb',
  'schema-cached', 'token-only-in-test-connection', 'upsert-pushes', 'local-time', 'plan-in-a-global', 'error-null',
  'id-as-number', 'answered-before-the-work', 'gzip-label-only', 'update-with-spread-default',
];

const { values: args } = parseArgs({ options: { mistake: { type: 'string', default: 'none' }, list: { type: 'boolean' } } });
if (args.list) {
  console.log(MISTAKES.join('\n'));
  process.exit(0);
}
if (args.mistake !== 'none' && !MISTAKES.includes(args.mistake)) {
  console.error(`unknown mistake ${args.mistake}`);
  process.exit(2);
}
const wrong = (name) => args.mistake === name;

// JSON without loss: JSON.parse rounds integers beyond 2^53, so those become
// BigInt, and -0 keeps its sign.
const BIG = '\u0001big';
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function parse(text) {
  if (wrong('json-parse-integers')) return JSON.parse(text);
  const marked = text.replace(TOKEN, (t) => (/^-?\d{16,}$/.test(t) ? `{${JSON.stringify(BIG)}:"${t}"}` : t));
  return JSON.parse(marked, (_, v) => (v && typeof v === 'object' && BIG in v ? BigInt(v[BIG]) : v));
}

function encode(v) {
  if (typeof v === 'bigint') return v.toString();
  if (Object.is(v, -0)) return '-0.0';
  if (Array.isArray(v)) return `[${v.map(encode).join(',')}]`;
  if (v && typeof v === 'object') {
    const members = Object.entries(v).filter(([, x]) => x !== undefined);
    return `{${members.map(([k, x]) => `${JSON.stringify(k)}:${encode(x)}`).join(',')}}`;
  }
  return JSON.stringify(v);
}

class RPCError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
const badParams = (message) => new RPCError(-32602, message);

// The schema. Identifiers are unique and required.
function field(name, type, extra = {}) {
  return {
    field_api_name: name, label: name.replaceAll('_', ' '), identifier: false, required: false,
    createable: true, updateable: true, type, array: false, ...extra,
  };
}
const identifier = { identifier: true, required: true };
const TABLES = {
  customer: {
    label: 'Customers', operations: ['upsert', 'insert', 'update', 'mirror'],
    fields: [
      field('customer_key', 'string', identifier), field('name', 'string', { required: true }), field('city', 'string'),
      field('points', 'integer'), field('balance', 'decimal'), field('score', 'float'), field('active', 'boolean'),
      field('born_on', 'date'), field('seen_at', 'date_time'), field('tags', 'string', { array: true }),
    ],
  },
  invoice: {
    label: 'Rechnungen für Kunden', operations: ['upsert', 'update', 'mirror'],
    fields: [
      field('number', 'integer', identifier), field('reference', 'string', identifier),
      field('memo', 'string'), field('total', 'decimal'), field('quantity', 'integer'),
    ],
  },
};
const store = new Map(Object.keys(TABLES).map((name) => [name, { rows: new Set(), index: new Map() }]));
const keyOf = (v) => (typeof v === 'string' ? `s${v}` : `n${v}`);

function rowsBy(table, name, value) {
  return store.get(table).index.get(`${name}\0${keyOf(value)}`) ?? [];
}

// reindex puts a row under its identifiers, or takes it away.
function reindex(table, row, add) {
  const { rows, index } = store.get(table);
  for (const f of TABLES[table].fields.filter((x) => x.identifier && row[x.field_api_name] != null)) {
    const key = `${f.field_api_name}\0${keyOf(row[f.field_api_name])}`;
    const rest = (index.get(key) ?? []).filter((r) => r !== row);
    index.set(key, add ? [...rest, row] : rest);
  }
  if (add) rows.add(row);
  else rows.delete(row);
}

// unfit says why a value does not fit its field, '' when it does.
function unfit(f, v) {
  const name = f.field_api_name;
  if (v === null || v === undefined) return f.required ? `${name} is required` : '';
  if (f.array) return Array.isArray(v) ? v.map((x) => unfit({ ...f, array: false, required: true }, x)).find(Boolean) ?? '' : `${name} must be an array`;
  const ok = {
    boolean: () => typeof v === 'boolean',
    integer: () => typeof v === 'bigint' || Number.isInteger(v),
    float: () => typeof v === 'bigint' || Number.isFinite(v),
    decimal: () => typeof v === 'string' && /^-?\d+(\.\d+)?$/.test(v),
    date: () => typeof v === 'string' && /^\d{4}-\d\d-\d\d$/.test(v),
    date_time: () => typeof v === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(v),
    string: () => typeof v === 'string' && v.isWellFormed(),
  }[f.type]();
  return ok ? '' : `${name} is no valid ${f.type}`;
}

// toLocal is what `new Date(text)` and its local getters make of a moment.
function toLocal(text) {
  const d = new Date(Date.parse(text) - 5 * 3600_000);
  return `${d.toISOString().slice(0, 19)}Z`;
}

// check looks at one record before anything is written.
function check(table, operation, active, record) {
  const { fields } = TABLES[table];
  const value = record[active.field_api_name];
  if (value === null || value === undefined) throw new Error(`${active.field_api_name} is missing`);
  const why = unfit(active, value);
  if (why) throw new Error(why);
  if (operation === 'delete') return;
  for (const name of Object.keys(record)) {
    const f = fields.find((x) => x.field_api_name === name);
    if (!f) throw new Error(`there is no field ${name}`);
    const reason = unfit(f, record[name]);
    if (reason) throw new Error(reason);
  }
}

// write carries out one record. It does not wait in between, so that two
// calls cannot both miss the same row.
function write(table, operation, active, record) {
  const name = active.field_api_name;
  const [row] = rowsBy(table, name, record[name]);
  if (operation === 'delete') {
    if (row) reindex(table, row, false);
    return;
  }
  if (operation === 'insert' && row) throw new Error('record already exists');
  if (operation === 'update' && !row) throw new Error('record not present');
  const others = TABLES[table].fields.filter((f) => f.identifier && record[f.field_api_name] != null);
  for (const f of others) {
    const taken = rowsBy(table, f.field_api_name, record[f.field_api_name]).some((r) => r !== row);
    if (taken && !wrong('upsert-pushes')) throw new Error(`${f.field_api_name} is taken`);
  }
  const values = { ...record };
  if (wrong('local-time')) {
    for (const f of TABLES[table].fields) {
      if (f.type === 'date_time' && values[f.field_api_name]) values[f.field_api_name] = toLocal(values[f.field_api_name]);
    }
  }
  if (!row || (wrong('upsert-pushes') && operation === 'upsert')) {
    for (const f of TABLES[table].fields) if (f.required && values[f.field_api_name] == null) throw new Error(`${f.field_api_name} is required`);
    reindex(table, values, true);
    return;
  }
  reindex(table, row, false);
  if (wrong('update-with-spread-default')) {
    for (const f of TABLES[table].fields) if (!f.required) row[f.field_api_name] = null;
  }
  reindex(table, Object.assign(row, values), true);
}

function answered(active, record, error) {
  let value = record[active.field_api_name] ?? null;
  if (wrong('identifier-lowercased') && typeof value === 'string') value = value.toLowerCase();
  if (wrong('identifier-as-string') && value !== null) value = String(value);
  return error ? { identifier: value, success: false, error_message: error.message } : { identifier: value, success: true };
}

let currentPlan;

async function syncBatch({ sync_plan: plan, records }) {
  if (!plan || typeof plan !== 'object' || !Array.isArray(records)) throw badParams('sync_plan and records are needed');
  const table = tableOf(plan);
  if (wrong('plan-in-a-global')) {
    currentPlan = plan;
    await sleep(25); // a look-up of the connection, on a slow day
    plan = currentPlan;
  }
  const { operation } = plan;
  const allowed = TABLES[table].operations;
  if (!allowed.includes(operation) && !(operation === 'delete' && allowed.includes('mirror'))) throw badParams(`${table} does not allow ${operation}`);
  const mapped = Object.values(plan.schema ?? {}).find((s) => s.active_identifier);
  const active = TABLES[table].fields.find((f) => f.identifier && f.field_api_name === mapped?.field?.field_api_name);
  if (!active) throw badParams('the plan has no identifier that the object allows');

  if (wrong('batch-fails-as-a-whole')) {
    for (const r of records) check(table, operation, active, r);
  }
  if (wrong('promise-race')) return racing(table, operation, active, records);
  const results = records.map((record) => {
    try {
      check(table, operation, active, record);
      if (wrong('write-not-awaited') && operation !== 'delete') {
        later(table, operation, active, record);
        return answered(active, record);
      }
      write(table, operation, active, record);
      return answered(active, record);
    } catch (error) {
      if (wrong('always-success')) return answered(active, record);
      return answered(active, record, error);
    }
  });
  await sleep(0); // the store confirms
  const kept = wrong('failures-filtered-out') ? results.filter((r) => r.success) : results;
  return { record_results: kept };
}

// later is the write whose promise nobody waits for. It has looked up whether
// the record is there before.
function later(table, operation, active, record) {
  const there = rowsBy(table, active.field_api_name, record[active.field_api_name]).length > 0;
  if (operation === 'insert' && there) throw new Error('record already exists');
  if (operation === 'update' && !there) throw new Error('record not present');
  save(table, operation, active, record);
}

async function save(table, operation, active, record) {
  await sleep(1200);
  try {
    write(table, operation, active, record);
  } catch {
    // an unhandled rejection would end the process
  }
}

// racing waits for the first chunk where Promise.all would wait for all.
async function racing(table, operation, active, records) {
  const results = [];
  const chunk = async (part, wait) => {
    await sleep(wait);
    for (const { record, at } of part) {
      try {
        check(table, operation, active, record);
        write(table, operation, active, record);
        results[at] = answered(active, record);
      } catch (error) {
        results[at] = answered(active, record, error);
      }
    }
  };
  const numbered = records.map((record, at) => ({ record, at }));
  const chunks = [];
  for (let i = 0; i < records.length; i += 25) chunks.push(chunk(numbered.slice(i, i + 25), i * 40));
  if (chunks.length > 0) await Promise.race(chunks);
  return { record_results: records.map((record, at) => results[at] ?? answered(active, record)) };
}

function tableOf(params) {
  const name = params?.object?.object_api_name;
  if (typeof name !== 'string' || !Object.hasOwn(TABLES, name)) throw badParams('there is no such object');
  return name;
}

const fieldCache = new Map();

const METHODS = {
  test_connection: () => ({ success: true }),
  list_objects: () => ({ objects: Object.entries(TABLES).map(([name, t]) => ({ object_api_name: name, label: t.label })) }),
  list_fields: (params) => {
    const name = tableOf(params);
    if (!wrong('schema-cached')) return { fields: TABLES[name].fields };
    if (!fieldCache.has(name)) fieldCache.set(name, [...TABLES[name].fields]);
    return { fields: fieldCache.get(name) };
  },
  supported_operations: (params) => ({ operations: TABLES[tableOf(params)].operations }),
  get_sync_speed: () => ({ maximum_batch_size: 500, maximum_parallel_batches: 8, maximum_records_per_second: 20000 }),
  sync_batch: syncBatch,
};

const digest = (text) => createHash('sha256').update(text).digest();
const expected = digest(`Bearer ${process.env.ENDPOINT_TOKEN ?? ''}`);
const allowed = (request) => timingSafeEqual(digest(request.headers.authorization ?? ''), expected);

// call answers one parsed request: [HTTP status, reply].
async function call(request, message) {
  const id = message?.id ?? null;
  const reply = (body) => ({ jsonrpc: '2.0', id: wrong('id-as-number') && id !== null && !Number.isNaN(Number(id)) ? Number(id) : id, ...body });
  const failure = (status, code, text) => [status, reply({ error: { code, message: text } })];
  if (typeof message !== 'object' || Array.isArray(message) || message?.jsonrpc !== '2.0' || typeof message.method !== 'string') {
    return failure(200, -32600, 'Invalid Request');
  }
  if (!allowed(request) && !(wrong('token-only-in-test-connection') && message.method !== 'test_connection')) {
    return failure(401, -32000, 'the token is not valid');
  }
  if (!Object.hasOwn(METHODS, message.method)) {
    if (wrong('html-for-unknown-method')) return [404, `<!DOCTYPE html><pre>Cannot POST ${encodeURI(message.method)}</pre>`];
    return failure(200, -32601, 'Method not found');
  }
  try {
    const result = await METHODS[message.method](message.params ?? {});
    return [200, reply(wrong('error-null') ? { result, error: null } : { result })];
  } catch (error) {
    return failure(200, error.code ?? -32603, error.message);
  }
}

async function bodyOf(request) {
  const limit = wrong('body-limit-100kb') ? 100 * 1024 : 32 << 20;
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size <= limit) parts.push(part);
  }
  if (size > limit) throw Object.assign(new Error('request entity too large'), { status: 413 });
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
}

function answer(response, status, body, request) {
  const text = typeof body === 'string' ? body : encode(body);
  const headers = { 'Content-Type': typeof body === 'string' ? 'text/html' : 'application/json', 'Content-Length': Buffer.byteLength(text) };
  if (wrong('gzip-label-only') && request.url === '/rpc' && /gzip/.test(request.headers['accept-encoding'] ?? '')) headers['Content-Encoding'] = 'gzip';
  response.writeHead(status, headers).end(text);
}

// The test looks into the store here.
function readback({ object, identifier_field: name, identifiers }) {
  const records = identifiers.flatMap((value) => {
    const rows = rowsBy(object, name, value);
    return rows.length ? [{ identifier: value, count: rows.length, fields: rows[0] }] : [];
  });
  return { records, complete: true };
}

function alterSchema({ action }) {
  const { fields } = TABLES.customer;
  if (action === 'begin') fields.push(field('nickname', 'string'));
  else TABLES.customer.fields = fields.filter((f) => f.field_api_name !== 'nickname');
  return { ok: true, object: 'customer', field: 'nickname' };
}

const server = createServer(async (request, response) => {
  try {
    const text = await bodyOf(request);
    if (request.url === '/readback') return answer(response, 200, readback(parse(text)), request);
    if (request.url === '/hooks/alter_schema') return answer(response, 200, alterSchema(parse(text)), request);
    if (request.method !== 'POST') {
      return answer(response, 405, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'use POST' } }, request);
    }
    let message;
    try {
      message = parse(text);
    } catch {
      return answer(response, 200, { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }, request);
    }
    if (wrong('answered-before-the-work') && message?.method === 'sync_batch') {
      call(request, message);
      return response.writeHead(202, { 'Content-Length': 0 }).end();
    }
    const [status, body] = await call(request, message);
    return answer(response, status, body, request);
  } catch (error) {
    if (response.headersSent || response.destroyed) return response.destroy();
    return answer(response, error.status ?? 400, { jsonrpc: '2.0', id: null, error: { code: -32700, message: error.message } }, request);
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
