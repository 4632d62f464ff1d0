// JSON without loss. JSON.parse rounds integers beyond 2^53, so those become
// BigInt; -0 keeps its sign.
const BIG = '\u0001big';
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function parse(text) {
  const marked = text.replace(TOKEN, (t) => (/^-?\d{16,}$/.test(t) ? `{${JSON.stringify(BIG)}:"${t}"}` : t));
  if (marked === text) return JSON.parse(text);
  return JSON.parse(marked, (_, v) => (v && typeof v === 'object' && BIG in v ? BigInt(v[BIG]) : v));
}

export function encode(v) {
  if (typeof v === 'bigint') return v.toString();
  if (typeof v === 'number') return Object.is(v, -0) ? '-0.0' : JSON.stringify(v);
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  if (Array.isArray(v)) return `[${v.map(encode).join(',')}]`;
  const members = Object.entries(v).filter(([, x]) => x !== undefined);
  return `{${members.map(([k, x]) => `${JSON.stringify(k)}:${encode(x)}`).join(',')}}`;
}
