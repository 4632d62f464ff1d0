// Keeps records in memory, for trying things out: they are gone when the process
// ends, and no second process sees them.
import { objects } from './schema.js';

export async function open() {
  const tables = new Map(objects.map((object) => [object.object_api_name, new Map()]));
  return {
    async check() {},

    // write is a transaction: nothing else runs between its first and last record.
    async write({ object, operation, key }, records) {
      const table = tables.get(object.object_api_name);
      return records.map(({ values }) => writeOne(table, operation, values[key], values));
    },

    async read(object, key, identifiers) {
      const table = tables.get(object.object_api_name);
      return identifiers
        .filter((identifier) => table.has(identifier))
        .map((identifier) => ({ identifier, count: 1, fields: table.get(identifier) }));
    },

    async close() {},
  };
}

// A record that does not qualify is a failure with a message (the convention
// "failure" in destkit.yaml). A delete of what is gone has done its work.
function writeOne(table, operation, identifier, values) {
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
