// Keeps records in PostgreSQL, one table for each object.
import pg from 'pg';
import { parse, stringify } from './json.js';
import { objects } from './schema.js';

const columns = {
  boolean: 'boolean',
  decimal: 'numeric',
  float: 'double precision',
  integer: 'bigint',
  date: 'date',
  date_time: 'timestamptz',
  string: 'text',
};
const DATA_ERRORS = ['22', '23', '54']; // classes of SQLSTATE: a value may be to blame
const CONFLICT = '40'; // the class of a transaction that met another one
const RETRIES = 3;
const TABLES_LOCK = 7283411; // advisory: one process makes the tables

export async function open(url = process.env.DATABASE_URL) {
  if (!url) throw new Error('set DATABASE_URL to the URL of the database');
  // Whoever waits for a connection longer than this is better told to repeat.
  const pool = new pg.Pool({ connectionString: url, max: 8, connectionTimeoutMillis: 10_000 });
  pool.on('error', (error) => console.error(error)); // an idle connection was lost
  await transaction(pool, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [TABLES_LOCK]);
    for (const object of objects) {
      await client.query(`CREATE TABLE IF NOT EXISTS ${name(object.object_api_name)} (${object.fields.map(column).join(', ')})`);
    }
  });
  return {
    async check() {
      await pool.query('SELECT 1');
    },

    // write is one transaction.
    async write(plan, records) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await transaction(pool, async (client) => {
            const errors = [];
            for (const part of parts(plan, records)) errors.push(...(await writePart(client, plan, part)));
            return errors;
          });
        } catch (error) {
          if (error.code?.slice(0, 2) !== CONFLICT || attempt === RETRIES) throw error;
        }
      }
    },

    // read lets the database write the JSON.
    async read(object, key, identifiers) {
      const { type } = object.fields.find((field) => field.field_api_name === key);
      const { rows } = await pool.query(
        `SELECT ${name(key)}::text AS id, (SELECT to_json(r) FROM (SELECT ${object.fields.map(shown).join(', ')}) AS r)::text AS record
         FROM ${name(object.object_api_name)} WHERE ${name(key)} = ANY($1::text[]::${columns[type]}[])`,
        [identifiers.map(String)],
      );
      return identifiers.flatMap((identifier) => {
        const found = rows.filter((row) => row.id === String(identifier));
        return found.length ? [{ identifier, count: found.length, fields: parse(found[0].record) }] : [];
      });
    },

    async close() {
      await pool.end();
    },
  };
}

async function transaction(pool, work) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK').catch((lost) => (broken = lost));
    throw error;
  } finally {
    client.release(broken);
  }
}

// parts cuts a batch where a statement must end: it writes a key once, and one set
// of columns.
function* parts(plan, records) {
  let part = [];
  let keys = new Set();
  const shape = (values) => Object.keys(values).sort().join();
  for (const { values } of records) {
    if (part.length && (keys.has(values[plan.key]) || shape(values) !== shape(part[0]))) {
      yield part;
      part = [];
      keys = new Set();
    }
    part.push(values);
    keys.add(values[plan.key]);
  }
  if (part.length) yield part;
}

// writePart writes records by one statement. When the database refuses a value, it
// halves them until the record is found, so that it fails alone.
async function writePart(client, plan, part) {
  await client.query('SAVEPOINT part');
  let rows;
  try {
    ({ rows } = await client.query(statement(plan, part[0]), [stringify(part)]));
    await client.query('RELEASE SAVEPOINT part');
  } catch (error) {
    if (!DATA_ERRORS.includes(error.code?.slice(0, 2))) throw error;
    await client.query('ROLLBACK TO SAVEPOINT part');
    if (part.length === 1) return ['the database refuses a value of this record'];
    const middle = part.length >> 1;
    return [...(await writePart(client, plan, part.slice(0, middle))), ...(await writePart(client, plan, part.slice(middle)))];
  }
  const written = new Set(rows.map((row) => row.id));
  return part.map((values) => (written.has(String(values[plan.key])) ? null : skipped[plan.operation]));
}

// A record that does not qualify is a failure with a message (the convention
// "failure" in destkit.yaml). A delete of what is gone has done its work.
const skipped = {
  insert: 'a record with this identifier exists',
  update: 'no record with this identifier exists',
  delete: null,
};

// The records go in as JSON text, which keeps every digit. They are sorted, so that
// parallel batches lock rows in one order.
function statement({ object, operation, key, fields }, values) {
  const used = fields.filter((field) => Object.hasOwn(values, field.field_api_name));
  const names = used.map((field) => name(field.field_api_name));
  const rows = `json_to_recordset($1::json) AS r(${used.map((field, i) => `${names[i]} ${kind(field)}`).join(', ')})`;
  const table = `${name(object.object_api_name)} AS t`;
  const id = name(key);
  const returned = `RETURNING t.${id}::text AS id`;
  if (operation === 'delete') return `DELETE FROM ${table} USING ${rows} WHERE t.${id} = r.${id} ${returned}`;
  if (operation === 'update') {
    return `UPDATE ${table} SET ${names.map((n) => `${n} = r.${n}`).join(', ')} FROM ${rows} WHERE t.${id} = r.${id} ${returned}`;
  }
  const action = operation === 'insert' ? 'NOTHING' : `UPDATE SET ${names.map((n) => `${n} = excluded.${n}`).join(', ')}`;
  return `INSERT INTO ${table} (${names.join(', ')}) SELECT ${names.join(', ')} FROM ${rows} ORDER BY ${id} ON CONFLICT (${id}) DO ${action} ${returned}`;
}

// Names are those of the schema; nothing from a request ever gets into a statement.
const name = (text) => `"${text.replaceAll('"', '""')}"`;

const kind = (field) => columns[field.type] + (field.array ? '[]' : '');

function column(field) {
  const unique = field.identifier ? ' NOT NULL UNIQUE' : field.required ? ' NOT NULL' : '';
  return `${name(field.field_api_name)} ${kind(field)}${unique}`;
}

// shown is a column as the protocol has it: decimals are text, moments have a Z.
function shown({ field_api_name: field, type, array }) {
  const value = name(field);
  if (type === 'decimal') return `${value}::text${array ? '[]' : ''} AS ${value}`;
  if (type !== 'date_time' || array) return value;
  return `replace(to_char(${value} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z') AS ${value}`;
}
