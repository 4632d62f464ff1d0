// Destinations as after a tutorial of a web framework, on SQLite, each at its path:
// /m/NAME/rpc is the endpoint with the mistake or habit NAME, /m/none/rpc has none;
// /m/NAME/readback is for the tests alone. The process prints its port and ends with its
// standard input; the token is in ENDPOINT_TOKEN.
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { encode, parse } from '../node/json.mjs';
import { App, Failure } from './app.mjs';

const apps = new Map();
function appOf(names, way) {
  const at = `${names}/${way ?? ''}`;
  if (!apps.has(at)) apps.set(at, new App(names.split('+')));
  return apps.get(at);
}

async function bodyOf(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

const envelope = (id, rest) => ({ jsonrpc: '2.0', id, ...rest });
const failure = (id, code, message) => envelope(id, { error: { code, message } });

async function answer(app, request, body) {
  let message;
  try {
    message = parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    return [200, failure(null, -32700, 'the body is not JSON')];
  }
  const id = message?.id ?? null;
  if (message === null || Array.isArray(message) || message.jsonrpc !== '2.0' || typeof message.method !== 'string') return [200, failure(id, -32600, 'not JSON-RPC 2.0')];
  if (request.headers.authorization !== `Bearer ${process.env.ENDPOINT_TOKEN}`) return [401, failure(id, -32000, 'wrong token')];
  if (!Object.hasOwn(app.methods, message.method)) {
    if (app.wrong('page-502-for-unknown-methods')) return [502, '<html><head><title>502 Bad Gateway</title></head><body>The application did not respond.</body></html>'];
    return [200, failure(id, -32601, 'unknown method')];
  }
  const params = message.params ?? {};
  if (typeof params !== 'object' || Array.isArray(params)) return [200, failure(id, -32602, 'params must be an object')];
  try {
    const result = await app.methods[message.method](params);
    return [message.method === 'sync_batch' ? app.status : 200, envelope(id, { result })];
  } catch (error) {
    return [200, failure(id, error instanceof Failure ? error.code : -32000, error.message)];
  }
}

async function serve(request, response) {
  const [, names, way, what] = /^\/m\/([^/]+)(?:\/([a-z]+))?\/([a-z_]+)(?:\?.*)?$/.exec(request.url) ?? [];
  if (!names) return response.writeHead(404).end();
  const app = appOf(names, way);
  await app.ready;
  const body = await bodyOf(request);
  if (what === 'readback') return response.end(encode(await app.readback(parse(body.toString()))));
  if (app.wrong('body-limit-at-full-size') && body.length > 100 * 1024) {
    return response.writeHead(413, { 'Content-Type': 'text/html' }).end('<!DOCTYPE html>\n<pre>PayloadTooLargeError: request entity too large</pre>');
  }
  if (request.method !== 'POST') return response.writeHead(405, { 'Content-Type': 'application/json' }).end(encode(failure(null, -32600, 'use POST')));
  const [status, reply] = await answer(app, request, body);
  const headers = { 'Content-Type': typeof reply === 'string' ? 'text/html' : 'application/json' };
  let bytes = Buffer.from(typeof reply === 'string' ? reply : encode(reply));
  if (app.compressed && /\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) {
    headers['Content-Encoding'] = 'gzip';
    bytes = gzipSync(bytes);
  }
  headers['Content-Length'] = bytes.length;
  return response.writeHead(status, headers).end(bytes);
}

const server = createServer((request, response) => {
  serve(request, response).catch(() => response.destroy()); // a caller that went away
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.resume().on('end', () => process.exit(0));
