// Hooks for the judge (destkit conform), apart from the endpoint: they are on a
// port of the loopback that is open only when HOOKS_PORT is set. Leave it unset in
// production.
//   /readback          says what is stored
//   /break_downstream  makes every call to the store fail, and takes that back
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { parse, stringify } from './json.js';
import { objects } from './schema.js';

// hookServer answers the hooks, and gives the store that the endpoint has to use.
export function hookServer(store) {
  let broken = false;
  const hooks = {
    '/readback': (question) => readBack(store, question),
    '/break_downstream': ({ action }) => ((broken = action === 'begin'), { ok: true }),
  };
  const server = createServer(async (request, response) => {
    try {
      const hook = request.method === 'POST' && hooks[request.url];
      if (!hook) throw new Error('there is no such hook');
      const answer = await hook(parse(await text(request)));
      response.setHeader('Content-Type', 'application/json');
      response.end(stringify(answer));
    } catch (error) {
      response.writeHead(500).end(error.message);
    }
  });
  const breakable = (method) => async (...args) => {
    if (broken) throw new Error('the store was broken by a hook');
    return store[method](...args);
  };
  return { server, store: { ...store, check: breakable('check'), write: breakable('write') } };
}

async function readBack(store, { object: name, identifier_field: key, identifiers }) {
  const object = objects.find((o) => o.object_api_name === name);
  if (!object?.fields.some((field) => field.field_api_name === key)) throw new Error('unknown object or field');
  return { records: await store.read(object, key, identifiers), complete: true };
}
