// Hooks for the judge (destkit conform), apart from the endpoint: they are on a
// port of the loopback that is open only when HOOKS_PORT is set. Leave it unset in
// production.
//   /readback          says what is stored
//   /break_downstream  makes every call to the store fail, and takes that back
//   /alter_schema      changes the label of a field, and takes that back
//   /rotate_token      puts a new token into force, and the old one back
//   /restart           closes the store and opens it again
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Store } from './batch.ts';
import { parse, stringify } from './json.ts';
import type { Json } from './json.ts';
import { objects } from './schema.ts';
import type { Endpoint } from './server.ts';
import { open } from './store.ts';

// hookServer answers the hooks, which change the token and the store of the endpoint.
export function hookServer(endpoint: Endpoint) {
  const { token } = endpoint;
  let { store } = endpoint;
  let broken = false;
  const working = () => {
    if (broken) throw new Error('the store was broken by a hook');
    return store;
  };
  endpoint.store = {
    read: (object, key, identifiers) => store.read(object, key, identifiers),
    check: async () => working().check(),
    write: async (plan, rows) => working().write(plan, rows),
    close: () => store.close(),
  };
  const hooks: Record<string, (order: Json) => object | Promise<object>> = {
    '/readback': (question) => readBack(store, question),
    '/break_downstream': ({ action }) => ((broken = action === 'begin'), { ok: true }),
    '/alter_schema': ({ action, object }) => alterSchema(object, action === 'begin'),
    '/rotate_token': ({ action }) => ({ ok: true, token: (endpoint.token = action === 'begin' ? randomUUID() : token) }),
    '/restart': async ({ action }) => {
      if (action === 'begin') {
        await store.close();
        store = await open();
      }
      return { ok: true };
    },
  };
  return createServer(async (request, response) => {
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
}

const ALTERED = ' (altered)';

function alterSchema(name: string, altered: boolean) {
  const field = objects.find((o) => o.object_api_name === name)?.fields[0];
  if (!field) throw new Error('unknown object');
  field.label = field.label.replace(ALTERED, '') + (altered ? ALTERED : '');
  return { ok: true, object: name, field: field.field_api_name };
}

async function readBack(store: Store, { object: name, identifier_field: key, identifiers }: Json) {
  const object = objects.find((o) => o.object_api_name === name);
  if (!object?.fields.some((field) => field.field_api_name === key)) throw new Error('unknown object or field');
  return { records: await store.read(object, key, identifiers), complete: true };
}
