// One endpoint with its own store: the six methods, and the answer to one HTTP
// request. Habits change what is declared and what is refused.
import { createHash, timingSafeEqual } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Batches } from './batch.mjs';
import { badParams, RPCError } from './errors.mjs';
import { habits } from './habits.mjs';
import { encode, parse } from './json.mjs';
import { field, tables } from './schema.mjs';
import { Store } from './store.mjs';

const digest = (text) => createHash('sha256').update(text).digest();
const expected = digest(`Bearer ${process.env.ENDPOINT_TOKEN ?? ''}`);
const allowed = (header) => timingSafeEqual(digest(header ?? ''), expected);

export class Endpoint {
  constructor(names) {
    this.wrong = (name) => names.includes(name);
    this.tables = tables(this.wrong);
    this.speed = { maximum_batch_size: 200, maximum_parallel_batches: 8, maximum_records_per_second: 20000 };
    if (this.wrong('body-limit-100kb')) this.speed.maximum_batch_size = 1000;
    this.headers = {};
    // Habits replace these.
    this.refusal = () => ''; // why a value that fits is refused
    this.verify = () => {}; // throws when the stored rows refuse a record
    this.prepare = () => () => ''; // looks at a batch, and then at each record
    this.results = (results) => results;
    this.success = (result) => result;
    this.failure = (result) => result;
    this.delay = () => 0;
    for (const name of names) habits[name]?.(this);
    this.store = new Store(this.tables, this.wrong);
    this.batches = new Batches(this);
    this.listings = new Map();
  }

  log() {
    // An author's log; the tests want a silent process.
  }

  tableOf(params) {
    const name = params?.object?.object_api_name;
    if (this.wrong('html-page-for-exceptions')) return this.tables[name].fields && name; // a TypeError when there is no such object
    if (typeof name !== 'string' || !Object.hasOwn(this.tables, name)) throw badParams(`there is no object ${JSON.stringify(name)}`);
    return name;
  }

  methods = {
    test_connection: () => ({ success: true }),
    list_objects: () => {
      if (this.wrong('listing-needs-a-permission')) throw Object.assign(new Error('403 Forbidden'), { page: true });
      const objects = Object.entries(this.tables).map(([name, t]) => ({ object_api_name: name, label: this.wrong('label-undefined') && name === 'ticket' ? t.title : t.label }));
      return this.wrong('bare-list') ? objects : { objects };
    },
    list_fields: (params) => {
      const name = this.tableOf(params);
      this.listed = params.object;
      this.asked = (this.asked ?? 0) + 1;
      if (this.wrong('fields-by-two-processes') && this.asked % 3 === 0) return { fields: this.tables[name].fields.slice(0, -1) }; // one has an older schema
      if (!this.wrong('fields-cached')) return { fields: this.tables[name].fields };
      if (!this.listings.has(name)) this.listings.set(name, [...this.tables[name].fields]);
      return { fields: this.listings.get(name) };
    },
    supported_operations: (params) => ({ operations: this.tables[this.tableOf(params)].operations }),
    get_sync_speed: () => {
      if (this.wrong('speed-from-the-environment')) {
        return Object.fromEntries(Object.entries(this.speed).map(([k, v]) => [k, String(v)])); // process.env has texts
      }
      return this.speed;
    },
    sync_batch: (params) => this.batches.run(params),
  };

  refuses(headers, method) {
    if (this.wrong('token-only-in-test-connection') && method !== 'test_connection') return false;
    // Node has header names in lower case; this one is undefined.
    if (this.wrong('header-name-in-capitals') && method === 'sync_batch') return !allowed(headers.Authorization);
    return !allowed(headers.authorization);
  }

  // call answers one parsed request: [HTTP status, reply].
  async call(headers, message) {
    const id = message?.id ?? null;
    const reply = (body) => ({ jsonrpc: '2.0', id: this.wrong('id-as-number') ? Number(id) || id : id, ...body });
    const failure = (status, code, text) => {
      if (this.wrong('error-is-a-text')) return [status, reply({ error: text })];
      if (this.wrong('no-version-on-errors')) return [status, { id, error: { code, message: text } }];
      if (this.wrong('codes-of-node')) return [status, reply({ error: { code: code === -32601 ? 'ERR_METHOD_NOT_FOUND' : 'ERR_INVALID_ARG_TYPE', message: text } })];
      return [status, reply({ error: { code, message: text } })];
    };
    if (typeof message !== 'object' || Array.isArray(message) || message?.jsonrpc !== '2.0' || typeof message.method !== 'string') {
      return failure(200, -32600, 'Invalid Request');
    }
    if (this.refuses(headers, message.method)) return failure(401, -32000, 'the token is not valid');
    if (!Object.hasOwn(this.methods, message.method)) {
      if (this.wrong('html-for-unknown-methods')) return [404, page(`Cannot POST ${encodeURI(message.method)}`)];
      return failure(200, -32601, 'Method not found');
    }
    try {
      const result = await this.methods[message.method](message.params ?? {});
      return [200, reply(this.wrong('error-null') ? { result, error: null } : { result })];
    } catch (error) {
      if (this.wrong('html-page-for-exceptions') && !(error instanceof RPCError)) return [500, page(error.message)];
      if (error.page) return [500, page(error.message)];
      return failure(200, error instanceof RPCError ? error.code : -32603, error.message);
    }
  }

  // handle answers one HTTP request whose body has been read.
  async handle(request, body) {
    if (request.method !== 'POST') return [405, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'use POST' } }];
    let message;
    try {
      message = this.wrong('plain-json-parser') ? JSON.parse(body) : parse(body);
    } catch (error) {
      if (this.wrong('crash-on-bad-json')) throw error;
      return [200, { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Parse error' } }];
    }
    if (this.wrong('answered-before-the-work') && message?.method === 'sync_batch') {
      this.call(request.headers, message).catch(this.log);
      return [202, ''];
    }
    return this.call(request.headers, message);
  }

  // written makes the bytes and headers of a reply.
  written(request, body) {
    const text = typeof body === 'string' ? body : encode(body);
    const headers = { 'Content-Type': text.startsWith('<') ? 'text/html' : 'application/json', ...this.headers };
    headers['Content-Length'] = this.wrong('length-in-characters') ? text.length : Buffer.byteLength(text);
    if (this.wrong('gzip-label-only') && /gzip/.test(request.headers['accept-encoding'] ?? '')) headers['Content-Encoding'] = 'gzip';
    if (this.wrong('gzip-without-label') && text.length > 1024 && /gzip/.test(request.headers['accept-encoding'] ?? '')) {
      const bytes = gzipSync(text);
      return { text: bytes, headers: { ...headers, 'Content-Length': bytes.length } };
    }
    if (this.wrong('rate-limit-with-window')) headers['X-RateLimit-Limit'] = '600;w=60';
    return { text, headers };
  }

  alterSchema({ action }) {
    const { fields } = this.tables.contact;
    if (action === 'begin') fields.push(field('nickname', 'string'));
    else this.tables.contact.fields = fields.filter((f) => f.field_api_name !== 'nickname');
    return { ok: true, object: 'contact', field: 'nickname' };
  }
}

const page = (text) => `<!DOCTYPE html>\n<html><body><pre>${text}</pre></body></html>`;
