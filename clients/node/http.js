// JSON over HTTP.
import { ApiError, DestkitError } from './errors.js';

// call sends one request and returns the decoded JSON of its response. A body that is
// text is sent as it is, everything else as JSON.
export async function call(method, url, { body, token, query = {} } = {}) {
  const at = new URL(url);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) at.searchParams.set(name, String(value));
  }
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  let text;
  try {
    response = await fetch(at, { method, headers, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body) });
    text = await response.text();
  } catch (error) {
    throw new DestkitError(`${method} ${at}: no response: ${error.cause?.message ?? error.message}`, { cause: error });
  }
  const answer = decode(text);
  if (response.status >= 400) {
    throw new ApiError(`${method} ${at}: ${response.status} ${answer?.message ?? text}`, response.status, answer);
  }
  return answer;
}

// pages gives the items called name of all pages of a list with a cursor.
export async function pages(url, name, query) {
  const items = [];
  for (let after; after !== null; ) {
    const page = await call('GET', url, { query: { ...query, after } });
    items.push(...(page[name] ?? []));
    after = page.next ?? null;
  }
  return items;
}

function decode(text) {
  if (text === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
