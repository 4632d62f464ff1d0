// Keeps records in memory, for trying things out: they are gone when the process
// ends, and no second process sees them.
import type { Found, Plan, Store } from './batch.ts';
import { objects } from './schema.ts';
import type { Value } from './values.ts';

type Fields = Record<string, Value>;
type Table = Map<Value, Fields>;

export async function open(): Promise<Store> {
  const tables = new Map<string, Table>(objects.map((object) => [object.object_api_name, new Map()]));
  const tableOf = (name: string) => tables.get(name) as Table;
  return {
    async check() {},

    // write is a transaction: nothing else runs between its first and last record.
    async write({ object, operation, key }, rows) {
      const table = tableOf(object.object_api_name);
      return rows.map(({ values }) => writeOne(table, operation, values[key] as Value, values));
    },

    async read(object, _, identifiers) {
      const table = tableOf(object.object_api_name);
      return identifiers.flatMap((identifier): Found[] => {
        const fields = table.get(identifier);
        return fields ? [{ identifier, count: 1, fields }] : [];
      });
    },

    async close() {},
  };
}

// A record that does not qualify is a failure with a message (the convention
// "failure" in destkit.yaml). A delete of what is gone has done its work.
function writeOne(table: Table, operation: Plan['operation'], identifier: Value, values: Fields): string | null {
  const stored = table.get(identifier);
  if (operation === 'delete') {
    table.delete(identifier);
    return null;
  }
  if (operation === 'insert' && stored) return 'a record with this identifier exists';
  if (operation === 'update' && !stored) return 'no record with this identifier exists';
  table.set(identifier, { ...stored, ...values });
  return null;
}
