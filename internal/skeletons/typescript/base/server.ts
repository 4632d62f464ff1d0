// The HTTP side: one POST per call, the token, limits, the log, a clean stop.
import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Store } from './batch.ts';
import { hookServer } from './hooks.ts';
import { stringify } from './json.ts';
import { call } from './rpc.ts';
import type { Note } from './rpc.ts';
import { open } from './store.ts';

const MOST_BODY = 16 * 1024 * 1024; // bytes

export interface Settings {
  token: string | undefined;
  host?: string | undefined;
  port?: number | undefined;
  hooksPort?: number | undefined; // none: no hooks
  log?: (line: string) => void;
}

// What a call is answered with.
export interface Endpoint {
  token: string;
  store: Store;
}

export async function start({ token, host = '127.0.0.1', port = 8080, hooksPort, log = console.log }: Settings) {
  if (!token) throw new Error('set DESTINATION_TOKEN to the token that the service sends');
  const endpoint: Endpoint = { token, store: await open() }; // hooks change them
  const hooks = hooksPort === undefined ? null : hookServer(endpoint);
  const server = createServer((request, response) => {
    const begun = performance.now();
    serve(request, response, endpoint)
      .catch((error): Note => {
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
  const hooksUrl = hooks && hooksPort !== undefined ? await listen(hooks, hooksPort, '127.0.0.1') : undefined;
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

async function serve(request: IncomingMessage, response: ServerResponse, { store, token }: Endpoint): Promise<Note> {
  const path = request.url?.split('?', 1)[0];
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
function authorized(header: string | undefined, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(header ?? ''), digest(`Bearer ${token}`));
}

// read takes the body in; null when it is too large.
async function read(request: IncomingMessage): Promise<Buffer | null> {
  if (Number(request.headers['content-length']) > MOST_BODY) return null;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MOST_BODY) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const refusal = (code: number, message: string) => ({ jsonrpc: '2.0', id: null, error: { code, message } });

function refuse(response: ServerResponse, status: number, code: number, message: string): Note {
  response.setHeader('Connection', 'close'); // the body was not read
  send(response, status, refusal(code, message));
  return { code };
}

function send(response: ServerResponse, status: number, value: unknown) {
  const body = Buffer.from(stringify(value));
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, 'Cache-Control': 'no-store' });
  response.end(body);
}

function listen(server: Server, port: number, host: string) {
  return new Promise<string>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, backlog: 511 }, () => {
      const at = server.address() as AddressInfo;
      resolve(`http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`);
    });
  });
}

const end = (server: Server) =>
  new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
