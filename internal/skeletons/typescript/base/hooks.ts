// Hooks for the judge (destkit conform), apart from the endpoint: they are on a
// port of the loopback that is open only when HOOKS_PORT is set. Leave it unset in
// production.
//   /readback          says what is stored
//   /break_downstream  makes every call to the store fail, and takes that back
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Store } from './batch.ts';
import { parse, stringify } from './json.ts';
import type { Json } from './json.ts';
import { objects } from './schema.ts';

// hookServer answers the hooks, and gives the store that the endpoint has to use.
export function hookServer(store: Store) {
  let broken = false;
  const hooks: Record<string, (order: Json) => object | Promise<object>> = {
    '/readback': (question) => readBack(store, question),
    '/break_downstream': ({ action }) => ((broken = action === 'begin'), { ok: true }),
  };
  const server = createServer(async (request, response) => {
    try {
      const hook = request.method === 'POST' && hooks[request.url ?? ''];
      if (!hook) throw new Error('there is no such hook');
      const answer = await hook(parse(await text(request)));
      response.setHeader('Content-Type', 'application/json');
      response.end(stringify(answer));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  const working = () => {
    if (broken) throw new Error('the store was broken by a hook');
    return store;
  };
  const breakable: Store = {
    ...store,
    check: async () => working().check(),
    write: async (plan, rows) => working().write(plan, rows),
  };
  return { server, store: breakable };
}

async function readBack(store: Store, { object: name, identifier_field: key, identifiers }: Json) {
  const object = objects.find((o) => o.object_api_name === name);
  if (!object?.fields.some((field) => field.field_api_name === key)) throw new Error('unknown object or field');
  return { records: await store.read(object, key, identifiers), complete: true };
}
