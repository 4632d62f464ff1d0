// JSON without loss. JSON.parse rounds integers beyond 2^53, and two records would
// get one identifier. Here such integers become BigInt, and are written as numbers
// again.
import { randomUUID } from 'node:crypto';

// Integers are carried past JSON.parse and JSON.stringify as strings with this
// mark. It is made anew in each process, so no text from outside can begin with it.
const MARK = `${randomUUID()}:`;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LARGE = /^-?[1-9]\d{15,}$/;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

export function parse(text) {
  const value = JSON.parse(text); // what is not JSON ends here
  if (!/\d{16}/.test(text)) return value;
  const marked = text.replace(TOKEN, (token) => (LARGE.test(token) ? `"${MARK}${token}"` : token));
  return JSON.parse(marked, (_, v) => (typeof v === 'string' && v.startsWith(MARK) ? exact(v.slice(MARK.length)) : v));
}

export function stringify(value) {
  return JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? MARK + v : v)).replace(MARKED, '$1');
}

const exact = (digits) => (Number.isSafeInteger(Number(digits)) ? Number(digits) : BigInt(digits));
