// Keeps records in a SQLite file, one table for each object. It uses node:sqlite,
// which Node has from 22.13 on.
import type { SQLInputValue, StatementSync } from 'node:sqlite';
import type { Found, Plan, Row, Store } from './batch.ts';
import { objects } from './schema.ts';
import type { Field, FieldType, ObjectType } from './schema.ts';
import type { Value } from './values.ts';

const columns: Record<FieldType, string> = {
  boolean: 'INTEGER',
  decimal: 'TEXT', // as it was sent: REAL would round it
  float: 'REAL',
  integer: 'INTEGER',
  date: 'TEXT',
  date_time: 'TEXT',
  string: 'TEXT',
};
const CONSTRAINT = 19; // of SQLite's result codes

export async function open(file = process.env.DATABASE || 'records.db'): Promise<Store> {
  const { DatabaseSync } = await import('node:sqlite').catch(() => {
    throw new Error(`Node ${process.versions.node} has no node:sqlite: use 22.13 or newer`);
  });
  const db = new DatabaseSync(file);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 10000');
  for (const object of objects) {
    db.exec(`CREATE TABLE IF NOT EXISTS ${name(object.object_api_name)} (${object.fields.map(column).join(', ')})`);
  }
  return {
    async check() {
      db.prepare('SELECT 1').get();
    },

    // write is one transaction. What a constraint of a table refuses is the failure of
    // that record alone.
    async write(plan: Plan, rows: Row[]) {
      const statements = new Map<string, StatementSync>(); // by what a record has
      const prepare = (names: string[]) => {
        const prepared = statements.get(names.join()) ?? db.prepare(statement(plan, names));
        statements.set(names.join(), prepared);
        return prepared;
      };
      db.exec('BEGIN IMMEDIATE');
      try {
        const errors = rows.map(({ values }) => writeOne(plan, values, prepare(Object.keys(values))));
        db.exec('COMMIT');
        return errors;
      } catch (error) {
        if (db.isTransaction !== false) db.exec('ROLLBACK');
        throw error;
      }
    },

    async read(object, key, identifiers) {
      const names = object.fields.map((field) => name(field.field_api_name)).join(', ');
      const query = db.prepare(`SELECT ${names} FROM ${name(object.object_api_name)} WHERE ${name(key)} = ?`);
      query.setReadBigInts(true);
      return identifiers.flatMap((identifier): Found[] => {
        const [first, ...more] = query.all(identifier);
        return first ? [{ identifier, count: 1 + more.length, fields: record(object, first) }] : [];
      });
    },

    async close() {
      db.close();
    },
  };
}

// A record that does not qualify is a failure with a message (the convention
// "failure" in destkit.yaml). A delete of what is gone has done its work.
function writeOne({ operation, key }: Plan, values: Record<string, Value>, prepared: StatementSync): string | null {
  const bound = (value: Value): SQLInputValue => {
    if (typeof value === 'boolean') return Number(value);
    return Array.isArray(value) ? JSON.stringify(value) : value;
  };
  const stored = Object.values(values).map(bound);
  if (operation === 'update') stored.push(bound(values[key] ?? null)); // after WHERE
  let changed: number;
  try {
    changed = Number(prepared.run(...stored).changes);
  } catch (error) {
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === CONSTRAINT) return 'a constraint of the table refuses this record';
    throw error;
  }
  if (operation === 'insert' && changed === 0) return 'a record with this identifier exists';
  if (operation === 'update' && changed === 0) return 'no record with this identifier exists';
  return null;
}

// Names are those of the schema; nothing from a request ever gets into a statement.
const name = (text: string) => `"${text.replaceAll('"', '""')}"`;

function column(field: Field): string {
  const kind = field.array ? 'TEXT' : columns[field.type];
  const unique = field.identifier ? ' NOT NULL UNIQUE' : field.required ? ' NOT NULL' : '';
  return `${name(field.field_api_name)} ${kind}${unique}`;
}

function statement({ object, operation, key }: Plan, columnNames: string[]): string {
  const table = name(object.object_api_name);
  if (operation === 'delete') return `DELETE FROM ${table} WHERE ${name(key)} = ?`;
  const names = columnNames.map(name);
  if (operation === 'update') return `UPDATE ${table} SET ${names.map((n) => `${n} = ?`).join(', ')} WHERE ${name(key)} = ?`;
  const sets = names.map((n) => `${n} = excluded.${n}`).join(', ');
  const action = operation === 'insert' ? 'NOTHING' : `UPDATE SET ${sets}`;
  return `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')}) ON CONFLICT (${name(key)}) DO ${action}`;
}

function record(object: ObjectType, row: Record<string, unknown>): Record<string, Value> {
  const fields: Record<string, Value> = {};
  for (const { field_api_name: field, type, array } of object.fields) {
    let value = row[field] as Value;
    if (array && typeof value === 'string') value = JSON.parse(value) as Value;
    else if (typeof value === 'bigint') value = type === 'boolean' ? value !== 0n : Number.isSafeInteger(Number(value)) ? Number(value) : value;
    fields[field] = value;
  }
  return fields;
}
