// Custom destinations in plain Node, each at its path: /m/NAME/rpc is
// the endpoint with the mistake or habit NAME, /m/NAME+OTHER/rpc has two,
// /m/none/rpc has none. The same path has /m/NAME/readback and /m/NAME/alter_schema,
// for the tests alone. The process prints its port and ends with its standard
// input; the token is in ENDPOINT_TOKEN.
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Endpoint } from './endpoint.mjs';
import { encode, parse } from './json.mjs';

// A zone that differs from UTC shows what takes local time for UTC.
process.env.TZ = 'Europe/Berlin';

const endpoints = new Map();
function endpointOf(names, way) {
  const at = `${names}/${way ?? ''}`;
  if (!endpoints.has(at)) endpoints.set(at, new Endpoint(names.split('+')));
  return endpoints.get(at);
}

async function bodyOf(request, limit) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size <= limit) parts.push(part);
  }
  if (size > limit) throw Object.assign(new Error('request entity too large'), { status: 413 });
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
}

let requests = 0;

async function serve(request, response) {
  const [, names, way, what] = /^\/m\/([^/]+)(?:\/([a-z]+))?\/([a-z_]+)(?:\?.*)?$/.exec(request.url) ?? [];
  if (!names) return response.writeHead(404).end();
  const endpoint = endpointOf(names, way);
  const limit = what === 'rpc' && endpoint.wrong('body-limit-100kb') ? 100 * 1024 : 32 << 20;
  const text = await bodyOf(request, limit);
  if (what === 'readback') return response.end(encode(endpoint.store.readback(parse(text))));
  if (what === 'alter_schema') return response.end(encode(endpoint.alterSchema(parse(text))));
  // The supervisor replaces a process that has grown too large.
  if (endpoint.wrong('restarts-in-the-middle') && ++requests > 150) process.exit(0);
  const wait = endpoint.delay();
  if (wait > 0) await sleep(wait);
  const [status, reply] = await endpoint.handle(request, text);
  const { text: body, headers } = endpoint.written(request, reply);
  return response.writeHead(status, headers).end(body);
}

const server = createServer((request, response) => {
  serve(request, response).catch((error) => {
    // What is not expected ends the process, as an unhandled rejection does.
    if (request.url.includes('crash-on-bad-json') && error instanceof SyntaxError) throw error;
    if (response.headersSent || response.destroyed) return response.destroy();
    const reply = { jsonrpc: '2.0', id: null, error: { code: -32700, message: error.message } };
    return response.writeHead(error.status ?? 400, { 'Content-Type': 'application/json' }).end(encode(reply));
  });
});
server.keepAliveTimeout = 60_000;

function listen() {
  server.listen(Number(process.env.ENDPOINT_PORT ?? 0), '127.0.0.1', () => {
    if (cluster.isPrimary) console.log(server.address().port);
    else process.send(server.address().port);
  });
}

// With ENDPOINT_RESTARTS a worker that ends is started again, as a container is.
if (cluster.isPrimary && process.env.ENDPOINT_RESTARTS) {
  let port;
  const start = () => {
    const worker = cluster.fork(port ? { ENDPOINT_PORT: port } : {});
    worker.on('message', (p) => {
      if (!port) console.log(p);
      port = p;
    });
    worker.on('exit', () => setTimeout(start, 150));
  };
  start();
  process.stdin.resume().on('end', () => process.exit(0));
} else {
  listen();
  if (cluster.isPrimary) process.stdin.resume().on('end', () => process.exit(0));
  else process.on('disconnect', () => process.exit(0));
}
