// Values: whether one fits its field, and what is kept of it.
const FITS = {
  boolean: (v) => typeof v === 'boolean',
  integer: (v) => typeof v === 'bigint' ? v >= -(2n ** 63n) && v < 2n ** 63n : Number.isInteger(v),
  float: (v) => typeof v === 'bigint' || Number.isFinite(v),
  decimal: (v) => typeof v === 'string' && /^-?\d+(\.\d+)?$/.test(v),
  date: (v) => typeof v === 'string' && /^\d{4}-\d\d-\d\d$/.test(v),
  date_time: (v) => typeof v === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(v),
  string: (v) => typeof v === 'string' && v.isWellFormed(),
};

// unfit says why a value does not fit its field, '' when it does.
export function unfit(f, v) {
  const name = f.field_api_name;
  if (v === null || v === undefined) return f.required ? `${name} is required` : '';
  if (f.array) {
    if (!Array.isArray(v)) return `${name} must be an array`;
    return v.map((x) => unfit({ ...f, array: false, required: true }, x)).find(Boolean) ?? '';
  }
  const fits = FITS[f.type] ?? (() => true);
  return fits(v) ? '' : `${name} is no valid ${f.type}`;
}

const two = (n) => String(n).padStart(2, '0');

// kept is what is stored of a value that fits; an endpoint without a mistake
// keeps it as it is.
export function kept(wrong, f, v) {
  if (wrong('falsy-values-dropped')) v = v || null;
  if (v === null || v === undefined) return keptNull(wrong, f);
  if (f.array) {
    if (wrong('arrays-joined')) return v.join(',');
    return v;
  }
  switch (f.type) {
    case 'string':
      return keptText(wrong, f, v);
    case 'decimal':
      if (wrong('decimals-as-numbers')) return String(Number(v));
      return v;
    case 'float':
      if (wrong('floats-parsed-as-integers')) return parseInt(v, 10);
      if (wrong('floats-to-two-places')) return Number(Number(v).toFixed(2));
      return v;
    case 'date':
      if (wrong('dates-at-local-midnight')) {
        const [year, month, day] = v.split('-').map(Number);
        return new Date(year, month - 1, day).toISOString().slice(0, 10);
      }
      return v;
    case 'date_time':
      if (wrong('moments-in-local-time')) {
        const d = new Date(v);
        return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}Z`;
      }
      return v;
    default:
      return v;
  }
}

// keptNull is what a conversion makes of null: Number(null) is 0, and so on.
function keptNull(wrong, f) {
  if (f.array || f.identifier) return null;
  if (wrong('null-made-a-number') && (f.type === 'integer' || f.type === 'float')) return Number(null);
  if (wrong('null-made-a-boolean') && f.type === 'boolean') return Boolean(null);
  if (wrong('null-made-a-date') && f.type === 'date') return new Date(null).toISOString().slice(0, 10);
  if (wrong('null-in-a-template') && f.type === 'string') return `${null}`;
  return null;
}

function keptText(wrong, f, v) {
  if (wrong('text-trimmed')) v = v.trim();
  if (wrong('html-escaped')) v = v.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  if (wrong('text-normalised')) v = v.normalize('NFC');
  if (wrong('line-ends-converted')) v = v.replace(/\r\n?/g, '\n');
  if (wrong('field-lower-cased') && f.field_api_name === 'city') v = v.toLowerCase();
  if (wrong('keys-lower-cased') && f.identifier) v = v.toLowerCase();
  return v;
}
