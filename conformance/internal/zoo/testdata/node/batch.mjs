// sync_batch: records into the store, each with its result.
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { badParams } from './errors.mjs';
import { encode } from './json.mjs';
import { kept, unfit } from './values.mjs';

const absent = (v) => v === null || v === undefined;

export class Batches {
  constructor(endpoint) {
    this.endpoint = endpoint;
    this.store = endpoint.store;
    this.tables = endpoint.tables;
    this.wrong = endpoint.wrong;
    this.plans = new Map(); // by sync
    this.seen = new Set(); // batches
    this.buffer = [];
  }

  // planOf reads what the batch is about.
  planOf(plan) {
    const table = this.endpoint.tableOf(plan);
    const { operation } = plan;
    const allowed = this.tables[table].operations;
    const deletes = operation === 'delete' && allowed.includes('mirror');
    if (!(allowed.includes(operation) && operation !== 'mirror') && !deletes) throw badParams(`${table} does not allow ${operation}`);
    const mapped = Object.values(plan.schema ?? {}).find((s) => s.active_identifier);
    const active = this.tables[table].fields.find((f) => f.identifier && f.field_api_name === mapped?.field?.field_api_name);
    if (!active) throw badParams('the plan has no identifier that the object allows');
    return { table, operation, active, name: active.field_api_name };
  }

  async run({ sync_plan: plan, records }) {
    if (!plan || typeof plan !== 'object' || !Array.isArray(records)) throw badParams('sync_plan and records are needed');
    if (this.wrong('plan-in-a-global')) {
      this.plan = plan;
      await sleep(5); // the token of the system behind is fetched
      plan = this.plan;
    }
    if (this.wrong('plan-kept-by-sync')) {
      if (!this.plans.has(plan.sync_id)) this.plans.set(plan.sync_id, plan);
      plan = this.plans.get(plan.sync_id);
    }
    if (this.wrong('object-of-the-last-listing') && this.endpoint.listed) plan = { ...plan, object: this.endpoint.listed };
    const p = { ...this.planOf(plan), size: records.length };
    if (this.wrong('columns-of-the-first-record') && records.length > 0) {
      const rest = ({ [p.name]: key, ...columns }) => columns;
      const names = Object.keys(rest(records[0])); // as for the header of a file
      records = records.map((r) => ({ [p.name]: r[p.name], ...Object.fromEntries(Object.values(rest(r)).map((v, at) => [names[at], v])) }));
    }
    if (this.wrong('batches-remembered')) {
      const mark = createHash('sha1').update(encode([p.table, p.operation, records])).digest('hex');
      if (this.seen.has(mark)) return { record_results: records.map((r) => this.answered(p, r)) };
      this.seen.add(mark);
    }
    const results = await this.write(p, records);
    return { record_results: this.labelled(p, records, results) };
  }

  // labelled is what becomes of the results on their way out.
  labelled(p, records, results) {
    if (this.wrong('failures-filtered-out')) return results.filter((r) => r.success);
    if (this.wrong('results-by-sorted-position')) {
      // The system behind wants keys in order; its answers are matched by position.
      const order = records.map((_, at) => at).sort((a, b) => String(records[a][p.name]).localeCompare(String(records[b][p.name])));
      return records.map((r, at) => ({ ...results[order[at]], identifier: r[p.name] }));
    }
    return this.endpoint.results(results);
  }

  async write(p, records) {
    if (this.wrong('results-not-awaited')) {
      const results = [];
      records.forEach(async (record) => {
        await sleep(3);
        results.push(await this.one(p, record));
      });
      return results;
    }
    if (this.wrong('waits-for-the-first-chunk')) return this.race(p, records);
    if (this.wrong('whole-table-rewritten')) return this.rewrite(p, records);
    if (this.wrong('last-chunk-forgotten') && p.operation !== 'delete') {
      // Chunks of ten, as the system behind wants them.
      for (let i = 0; i + 10 <= records.length; i += 10) {
        for (const record of records.slice(i, i + 10)) await this.one(p, record);
      }
      return records.map((r) => this.answered(p, r, this.complaint(p, r)));
    }
    const results = [];
    const refused = this.endpoint.prepare(p, records);
    for (const record of records) {
      const why = refused(record);
      const result = why ? this.answered(p, record, new Error(why)) : await this.one(p, record);
      results.push(result);
      if (this.wrong('stops-at-the-first-error') && !result.success) break;
    }
    return results;
  }

  async one(p, record) {
    try {
      const complaint = this.complaint(p, record);
      if (complaint) throw complaint;
      if (this.wrong('write-not-awaited')) {
        this.later(p, record); // no await
      } else if (this.wrong('writes-buffered')) {
        this.enqueue(p, record);
      } else if (this.wrong('looked-up-then-inserted')) {
        const there = this.store.find(p.table, p.name, record[p.name]).length > 0;
        await sleep(15); // the answer of the database
        this.apply(p, record, there);
      } else if (this.wrong('row-written-back-whole') && p.operation !== 'delete') {
        const [row] = this.store.find(p.table, p.name, record[p.name]);
        const read = { ...row };
        await sleep(1); // the answer of the database
        this.apply(p, record);
        if (row) Object.assign(row, read, this.values(p.table, record));
      } else {
        await this.store.connect();
        this.apply(p, record);
      }
      return this.answered(p, record);
    } catch (error) {
      if (this.wrong('errors-swallowed')) {
        return this.answered(p, record); // logged, and that is it
      }
      return this.answered(p, record, error);
    }
  }

  // complaint says why a record cannot be written, whatever is stored.
  complaint(p, record) {
    const value = this.wrong('key-hard-coded') ? record.external_id : record[p.name];
    if (absent(value)) return new Error(`${p.name} is missing`);
    const why = unfit(p.active, value);
    if (why) return new Error(why);
    if (p.operation === 'delete') return undefined;
    for (const [name, v] of Object.entries(record)) {
      const f = this.tables[p.table].fields.find((x) => x.field_api_name === name);
      if (!f) return new Error(`there is no field ${name}`);
      const reason = unfit(f, v) || this.endpoint.refusal(p, f, v, record);
      if (reason) return new Error(reason);
    }
    return undefined;
  }

  // apply carries out one record, without a pause in between.
  apply(p, record, there = true) {
    const { table, operation, name } = p;
    const key = kept(this.wrong, p.active, record[name]);
    let [row] = there ? this.store.find(table, name, key) : [];
    if (operation === 'delete' && !this.wrong('delete-falls-through')) {
      if (this.wrong('deletes-by-reference-alone') && name === 'number') return;
      if (row && this.wrong('deleted-for-ever')) row.deleted = true;
      else if (row) this.store.remove(table, row);
      return;
    }
    const bulk = this.wrong('bulk-insert-overwrites') && p.size >= 20; // another statement
    if (operation === 'insert' && row && !bulk) throw new Error('record already exists');
    if (this.wrong('update-checked-as-new') && operation === 'update' && row && Object.keys(record).length < 4) throw new Error('the record is not valid');
    if (operation === 'update' && (!row || row.deleted) && !this.wrong('update-creates')) throw new Error('record not present');
    this.endpoint.verify(p, record, row);
    if (this.wrong('fields-set-before-checks') && row) {
      const { number, reference, ...fields } = this.values(table, record);
      Object.assign(row, fields);
    }
    if (this.wrong('upsert-keeps-existing') && operation === 'upsert' && row) return;
    if (this.wrong('upsert-pushes') && operation === 'upsert') row = undefined;
    else if (there) this.taken(p, record, row);
    const values = this.values(table, record);
    if (!row) {
      if (operation !== 'update') this.demand(table, values);
      this.store.put(table, values);
      return;
    }
    if (!this.wrong('index-keeps-old-keys')) this.store.remove(table, row);
    if (this.wrong('update-from-defaults')) {
      for (const f of this.tables[table].fields) if (!f.required) row[f.field_api_name] = null;
    }
    this.store.put(table, Object.assign(row, values));
  }

  values(table, record) {
    const values = {};
    for (const f of this.tables[table].fields) {
      const name = f.field_api_name;
      if (!Object.hasOwn(record, name)) continue;
      if (this.wrong('column-forgotten') && name === 'credit') continue; // added to the list of fields last month
      if (this.wrong('nulls-ignored') && record[name] === null) continue;
      values[name] = kept(this.wrong, f, record[name]);
    }
    return values;
  }

  // taken refuses a further identifier that another row has.
  taken(p, record, row) {
    for (const name of this.store.identifiers(p.table)) {
      if (absent(record[name])) continue;
      if (this.store.find(p.table, name, record[name]).some((r) => r !== row)) throw new Error(`${name} is taken`);
    }
  }

  demand(table, values) {
    for (const f of this.tables[table].fields) {
      if (f.required && absent(values[f.field_api_name])) throw new Error(`${f.field_api_name} is required`);
    }
  }

  answered(p, record, error) {
    let value = record[p.name] ?? null;
    if (this.wrong('key-is-the-first-member')) value = Object.values(record)[0] ?? null;
    if (this.wrong('keys-escaped-in-results') && typeof value === 'string') value = value.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/'/g, '&#39;');
    if (this.wrong('keys-lower-cased') && typeof value === 'string') value = value.toLowerCase();
    if (this.wrong('keys-answered-as-text') && value !== null) value = String(value);
    if (error) return this.endpoint.failure({ identifier: value, success: false, error_message: error.message });
    if (this.wrong('success-is-a-count')) return { identifier: value, success: 1 };
    return this.endpoint.success({ identifier: value, success: true });
  }

  // later is a write whose promise was never awaited.
  async later(p, record) {
    await sleep(250);
    try {
      this.apply(p, record);
    } catch (error) {
      this.endpoint.log(error);
    }
  }

  // enqueue keeps records until there are a thousand of them, or 0.25 s have passed.
  enqueue(p, record) {
    this.buffer.push({ p, record });
    const flush = () => {
      clearTimeout(this.timer);
      this.timer = undefined;
      for (const item of this.buffer.splice(0)) {
        try {
          this.apply(item.p, item.record);
        } catch (error) {
          this.endpoint.log(error);
        }
      }
    };
    if (this.buffer.length >= 1000) flush();
    else this.timer ??= setTimeout(flush, 250);
  }

  // race waits for the first chunk where Promise.all would wait for all.
  async race(p, records) {
    const results = [];
    const chunk = async (from) => {
      await sleep(from * 20);
      for (let at = from; at < Math.min(from + 20, records.length); at++) results[at] = await this.one(p, records[at]);
    };
    const chunks = [];
    for (let from = 0; from < records.length; from += 20) chunks.push(chunk(from));
    if (chunks.length > 0) await Promise.race(chunks);
    return records.map((record, at) => results[at] ?? this.answered(p, record));
  }

  // rewrite reads the whole table, changes it and writes it back, as one does with a JSON file.
  async rewrite(p, records) {
    const all = await this.store.load(p.table);
    const results = records.map((record) => {
      const error = this.complaint(p, record);
      if (error) return this.answered(p, record, error);
      const at = all.findIndex((row) => row[p.name] === record[p.name]);
      if (p.operation === 'delete') {
        if (at >= 0) all.splice(at, 1);
      } else if (p.operation === 'insert' && at >= 0) {
        return this.answered(p, record, new Error('record already exists'));
      } else if (p.operation === 'update' && at < 0) {
        return this.answered(p, record, new Error('record not present'));
      } else if (at >= 0) {
        Object.assign(all[at], record);
      } else {
        all.push({ ...record });
      }
      return this.answered(p, record);
    });
    await this.store.save(p.table, all);
    return results;
  }
}
