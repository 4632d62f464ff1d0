// The HTTP side: one POST per call, the token, limits, the log, a clean stop.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { hookServer } from './hooks.js';
import { stringify } from './json.js';
import { call } from './rpc.js';
import { open } from './store.js';

const MOST_BODY = 16 * 1024 * 1024; // bytes

export async function start({ token, host = '127.0.0.1', port = 8080, hooksPort, log = console.log }) {
  if (!token) throw new Error('set DESTINATION_TOKEN to the token that the service sends');
  const endpoint = { token, store: await open() }; // hooks change them
  const hooks = hooksPort === undefined ? null : hookServer(endpoint);
  const server = createServer((request, response) => {
    const begun = performance.now();
    serve(request, response, endpoint)
      .catch((error) => {
        if (error.code === 'ECONNRESET') return { method: 'cut off by the caller' };
        console.error(error);
        if (!response.headersSent) send(response, 500, refusal(-32603, 'internal error'));
        return {};
      })
      .then((note) => log(stringify({ time: new Date(), status: response.statusCode, ...note, ms: Math.round(performance.now() - begun) })));
  });
  server.keepAliveTimeout = 75_000; // longer than load balancers keep a connection
  server.requestTimeout = 60_000;
  const url = await listen(server, port, host);
  const hooksUrl = hooks ? await listen(hooks, hooksPort, '127.0.0.1') : undefined;
  return {
    url,
    hooksUrl,
    // close takes no new calls, lets those under way end, and then closes the store.
    async close() {
      await Promise.all([end(server), hooks && end(hooks)]);
      await endpoint.store.close();
    },
  };
}

async function serve(request, response, { store, token }) {
  const path = request.url.split('?', 1)[0];
  if (request.method === 'GET' && path === '/healthz') {
    send(response, 200, { status: 'ok' });
    return { method: 'healthz' };
  }
  if (path !== '/') return refuse(response, 404, -32600, 'the endpoint is at /');
  if (request.method !== 'POST') {
    response.setHeader('Allow', 'POST');
    return refuse(response, 405, -32600, 'the endpoint takes POST only');
  }
  if (!authorized(request.headers.authorization, token)) {
    response.setHeader('WWW-Authenticate', 'Bearer');
    return refuse(response, 401, -32001, 'the token is missing or wrong');
  }
  const body = await read(request);
  if (!body) return refuse(response, 413, -32600, `the body is larger than ${MOST_BODY} bytes`);
  const { reply, note } = await call(body, store);
  send(response, 200, reply);
  return note;
}

// authorized compares digests, which have one length: how long it takes says
// nothing about the token.
function authorized(header, token) {
  const digest = (text) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
}

// read takes the body in; null when it is too large.
async function read(request) {
  if (Number(request.headers['content-length']) > MOST_BODY) return null;
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MOST_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const refusal = (code, message) => ({ jsonrpc: '2.0', id: null, error: { code, message } });

function refuse(response, status, code, message) {
  response.setHeader('Connection', 'close'); // the body was not read
  send(response, status, refusal(code, message));
  return { code };
}

function send(response, status, value) {
  const body = Buffer.from(stringify(value));
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, 'Cache-Control': 'no-store' });
  response.end(body);
}

function listen(server, port, host) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: 511 }, () => {
      const at = server.address();
      resolve(`http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`);
    });
  });
}

const end = (server) =>
  new Promise((resolve) => {
    server.close(resolve);
    server.closeIdleConnections();
  });
