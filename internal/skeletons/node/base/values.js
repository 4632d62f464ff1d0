// Checks one value against the field that it is for. What comes back can be stored
// as it is; what does not fit is an error with a message for the sync history.
export class Refused extends Error {}

const MOST_IDENTIFIER = 500; // characters; indexes of databases end at some length
const DECIMAL = /^[+-]?\d{1,1000}(\.\d{1,1000})?$/;
const LONE_SURROGATE = /[\ud800-\udfff]/u;
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const DATE_TIME = /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?Z$/;

export function check(field, value) {
  const name = field.field_api_name;
  if (value === null || value === undefined) {
    if (field.required) throw new Refused(`${name} is required`);
    return null;
  }
  if (!field.array) return scalar(field, name, value);
  if (!Array.isArray(value)) throw new Refused(`${name} must be a list`);
  return value.map((item) => scalar(field, name, item));
}

function scalar(field, name, value) {
  if (!kinds[field.type](value)) throw new Refused(`${name} must be ${words[field.type]}`);
  if (field.identifier && typeof value === 'string' && (value === '' || value.length > MOST_IDENTIFIER)) {
    throw new Refused(`${name} must have 1 to ${MOST_IDENTIFIER} characters`);
  }
  return field.type === 'float' ? Number(value) : value;
}

const kinds = {
  boolean: (v) => typeof v === 'boolean',
  decimal: (v) => typeof v === 'string' && DECIMAL.test(v),
  float: (v) => typeof v === 'bigint' || Number.isFinite(v),
  integer: (v) => Number.isSafeInteger(v) || (typeof v === 'bigint' && BigInt.asIntN(64, v) === v),
  date: (v) => typeof v === 'string' && isDate(v),
  date_time: (v) => typeof v === 'string' && DATE_TIME.test(v) && isDate(v.slice(0, 10)),
  string: (v) => typeof v === 'string' && !v.includes('\0') && !LONE_SURROGATE.test(v),
};

const words = {
  boolean: 'true or false',
  decimal: 'a decimal number as text, such as "12.50"',
  float: 'a finite number',
  integer: 'a whole number of 64 bits',
  date: 'a date such as "2021-03-29"',
  date_time: 'a moment in UTC such as "2021-03-29T16:32:23Z"',
  string: 'text without NUL characters and lone surrogates',
};

// isDate refuses days that no month has, which Date would move into the next one.
function isDate(text) {
  const parts = DATE.exec(text);
  if (!parts || parts[1] === '0000') return false;
  const at = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}
