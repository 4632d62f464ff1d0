// The store: rows in memory, found by each of their identifiers.
import { setTimeout as sleep } from 'node:timers/promises';

const keyOf = (v) => (typeof v === 'string' ? `s${v}` : `n${v}`);

export class Store {
  constructor(tables, wrong) {
    this.tables = tables;
    this.wrong = wrong;
    this.rows = new Map(Object.keys(tables).map((name) => [name, { all: new Set(), index: new Map() }]));
  }

  identifiers(table) {
    return this.tables[table].fields.filter((f) => f.identifier).map((f) => f.field_api_name);
  }

  find(table, name, value) {
    if (value === null || value === undefined) return [];
    return this.rows.get(table).index.get(`${name}\0${keyOf(value)}`) ?? [];
  }

  // connect is the round trip to a database.
  async connect() {
    await null;
  }

  put(table, row) {
    const { all, index } = this.rows.get(table);
    all.add(row);
    for (const name of this.identifiers(table)) {
      if (row[name] === null || row[name] === undefined) continue;
      const key = `${name}\0${keyOf(row[name])}`;
      const there = index.get(key) ?? [];
      if (!there.includes(row)) index.set(key, [...there, row]);
    }
  }

  remove(table, row) {
    const { all, index } = this.rows.get(table);
    all.delete(row);
    for (const name of this.identifiers(table)) {
      const key = `${name}\0${keyOf(row[name])}`;
      const rest = (index.get(key) ?? []).filter((r) => r !== row);
      if (rest.length > 0) index.set(key, rest);
      else index.delete(key);
    }
  }

  // load and save are for an author who keeps the whole table in one file.
  async load(table) {
    await sleep(2);
    return [...this.rows.get(table).all].map((row) => ({ ...row }));
  }

  async save(table, all) {
    await sleep(2);
    this.rows.set(table, { all: new Set(), index: new Map() });
    for (const row of all) this.put(table, row);
  }

  readback({ object, identifier_field: name, identifiers }) {
    const records = [];
    for (const value of identifiers) {
      const found = this.find(object, name, value).filter((r) => !r.deleted);
      if (found.length > 0) records.push({ identifier: value, count: found.length, fields: visible(found[0]) });
    }
    return { records, complete: true };
  }
}

function visible(row) {
  const { deleted, ...fields } = row;
  return fields;
}
