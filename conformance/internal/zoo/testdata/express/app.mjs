// One router with a handler for each method, as after a tutorial.
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from './db.mjs';
import { habits } from './habits.mjs';

const field = (name, type, more = {}) => ({
  field_api_name: name, label: name, identifier: false, required: false, createable: true, updateable: true, type, array: false, ...more,
});
const operations = ['upsert', 'insert', 'update', 'mirror'];
export const fields = [
  field('sku', 'string', { identifier: true, required: true }), field('title', 'string', { required: true }),
  field('description', 'string'), field('colour', 'string'), field('maker', 'string'), field('stock', 'integer'), field('weight', 'float'),
  field('price', 'decimal'), field('listed', 'boolean'), field('since', 'date'), field('sold_at', 'date_time'), field('keywords', 'string', { array: true }),
];
const fits = {
  string: (v) => typeof v === 'string' && v.isWellFormed(),
  integer: (v) => (typeof v === 'number' && Number.isSafeInteger(v)) || (typeof v === 'bigint' && BigInt.asIntN(64, v) === v),
  float: (v) => Number.isFinite(v) || typeof v === 'bigint',
  decimal: (v) => typeof v === 'string' && /^-?\d+(\.\d+)?$/.test(v),
  boolean: (v) => typeof v === 'boolean',
  date: (v) => typeof v === 'string' && /^\d{4}-\d\d-\d\d$/.test(v),
  date_time: (v) => typeof v === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(v),
};

export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

let databases = 0;

export class App {
  constructor(names) {
    this.names = names;
    this.status = 200;
    this.results = (results) => results;
    this.speed = { maximum_batch_size: this.wrong('body-limit-at-full-size') ? 500 : 200, maximum_parallel_batches: 4, maximum_records_per_second: 20000 };
    for (const name of names) habits[name]?.(this);
    this.db = new Database(++databases);
    this.ready = this.db.all(`CREATE TABLE product (${fields.map((f) => `${f.field_api_name} ${{ integer: 'INTEGER', float: 'REAL', boolean: 'INTEGER' }[f.type] ?? 'TEXT'}`).join(', ')}, UNIQUE (sku))`);
  }

  wrong(name) {
    return this.names.includes(name);
  }

  methods = {
    test_connection: () => ({ success: true }),
    list_objects: () => ({ objects: [{ object_api_name: 'product', label: 'Products' }] }),
    list_fields: (params) => this.named(params) && { fields },
    supported_operations: (params) => this.named(params) && { operations },
    get_sync_speed: () => this.speed,
    sync_batch: (params) => this.batch(params),
  };

  named(params) {
    if (params?.object?.object_api_name !== 'product') throw new Failure(-32602, 'unknown object');
    return true;
  }

  async batch({ sync_plan: plan, records }) {
    if (typeof plan !== 'object' || !Array.isArray(records)) throw new Failure(-32602, 'sync_plan and records are required');
    this.named(plan);
    const { operation } = plan;
    if (!['upsert', 'insert', 'update', 'delete'].includes(operation)) throw new Failure(-32602, 'unsupported operation');
    if (!plan.schema?.sku?.active_identifier) throw new Failure(-32602, 'sku is the identifier');
    if (operation === 'delete' && this.wrong('delete-not-awaited')) {
      sleep(400).then(() => this.db.alone(() => this.write(operation, records))); // no await
      return { record_results: records.map((r) => ({ identifier: r?.sku, success: true })) };
    }
    // Two transactions cannot share the connection.
    const work = () => this.write(operation, records);
    const results = this.wrong('transactions-interleave') ? await work() : await this.db.alone(work);
    return { record_results: this.results(results) };
  }

  async write(operation, records) {
    const skus = records.map((r) => r?.sku).filter((v) => typeof v === 'string' && v.isWellFormed());
    const found = await this.db.all(`SELECT sku FROM product WHERE sku IN (${skus.map(() => '?').join(', ')})`, skus);
    const known = new Set(found.map(([sku]) => sku));
    const statements = [];
    const results = records.map((r) => {
      const record = r ?? {};
      try {
        const statement = this.statement(operation, record, known);
        statements.push(statement);
        return { identifier: record.sku, success: true, statement };
      } catch (error) {
        return this.failed(record, error);
      }
    });
    const answers = await this.transaction(statements);
    return results.map(({ statement, ...result }) => {
      const error = statement && answers[statements.indexOf(statement)].error;
      return error ? this.failed({ sku: result.identifier }, new Error(error)) : result;
    });
  }

  async transaction(statements) {
    if (this.wrong('transactions-interleave')) {
      await this.db.all('BEGIN');
      const answers = await this.db.many(statements);
      await this.db.all('COMMIT');
      return answers;
    }
    return (await this.db.many([['BEGIN', []], ...statements, ['COMMIT', []]])).slice(1, -1);
  }

  failed(record, error) {
    return { identifier: record.sku ?? null, success: false, error_message: this.wrong('error-object-for-message') ? error : error.message };
  }

  statement(operation, record, known) {
    if (record.sku == null) throw new Error('sku is missing');
    for (const [name, value] of Object.entries(record)) {
      if (operation === 'delete' && name !== 'sku') continue;
      const f = fields.find((f) => f.field_api_name === name);
      if (!f) throw new Error(`unknown field ${name}`);
      if (value === null && f.required) throw new Error(`${name} is required`);
      if (value !== null && !(f.array ? Array.isArray(value) && value.every(fits[f.type]) : fits[f.type](value))) throw new Error(`${name} must be a ${f.type}`);
    }
    if (operation === 'delete') {
      known.delete(record.sku);
      return ['DELETE FROM product WHERE sku = ?', [record.sku]];
    }
    const found = known.has(record.sku);
    if (operation === 'insert' && found) throw new Error('product exists');
    if (operation === 'update' && !found) throw new Error('product not found');
    const names = Object.keys(record);
    const values = names.map((n) => (Array.isArray(record[n]) ? JSON.stringify(record[n]) : record[n]));
    if (found) return [`UPDATE product SET ${names.map((n) => `${n} = ?`).join(', ')} WHERE sku = ?`, [...values, record.sku]];
    if (record.title == null) throw new Error('title is required');
    known.add(record.sku);
    return [`INSERT INTO product (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, values];
  }

  async readback({ identifiers }) {
    const sql = `SELECT ${fields.map((f) => f.field_api_name).join(', ')} FROM product WHERE sku = ?`;
    const answers = await this.db.many(identifiers.map((identifier) => [sql, [identifier]]));
    const records = [];
    for (const [at, identifier] of identifiers.entries()) {
      const rows = answers[at].rows ?? [];
      if (rows.length === 0) continue;
      const shown = (f, v) => (v === null ? null : f.array ? JSON.parse(v) : f.type === 'boolean' ? v === 1 : v);
      records.push({ identifier, count: rows.length, fields: Object.fromEntries(fields.map((f, i) => [f.field_api_name, shown(f, rows[0][i])])) });
    }
    return { records, complete: true };
  }
}
