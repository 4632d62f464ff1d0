// Habits that are right and unusual: what they change of an endpoint.
import { field, identifier } from './schema.mjs';

// formats are refused with their own messages.
const formats = (rules) => (endpoint) => {
  endpoint.refusal = (p, f, v) => {
    const rule = rules[f.field_api_name];
    if (!rule || v === null) return '';
    const [form, message] = rule;
    return form.test(v) ? '' : message;
  };
};

const EMAIL = /^[^@\s]+@[^@\s]+\.[a-z]{2,}$/i;

function replace(endpoint, fields, extra = {}) {
  Object.assign(endpoint.tables.contact, { fields, ...extra });
}

const operations = (...names) => (endpoint) => {
  endpoint.tables.contact.operations = names;
};

const speed = (changes) => (endpoint) => Object.assign(endpoint.speed, changes);

export const habits = {
  'strict-formats': (endpoint) => {
    replace(endpoint, [
      field('contact_no', 'string', identifier), field('last_name', 'string', { required: true }), field('email', 'string'),
      field('phone_number', 'string'), field('country_code', 'string'), field('website_url', 'string'), field('postcode', 'string'),
      field('currency', 'string'), field('language', 'string'), field('visits', 'integer'),
    ]);
    formats({
      email: [EMAIL, 'email is not a valid e-mail address'],
      phone_number: [/^\+[1-9]\d{6,14}$/, 'phone_number must be in E.164 format, e.g. +31201234567'],
      country_code: [/^[A-Z]{2}$/, 'country_code must be an ISO 3166-1 alpha-2 code'],
      website_url: [/^https?:\/\/[^\s/]+\.[^\s/]+/, 'website_url must be an absolute URL'],
      postcode: [/^[A-Z0-9][A-Z0-9 -]{2,9}$/i, 'postcode is not valid'],
      currency: [/^[A-Z]{3}$/, 'currency must be an ISO 4217 code'],
      language: [/^[a-z]{2}(-[A-Z]{2})?$/, 'language must be a tag such as en or en-GB'],
    })(endpoint);
  },
  'email-as-key': (endpoint) => {
    replace(endpoint, [field('email', 'string', identifier), field('first_name', 'string'), field('last_name', 'string', { required: true }), field('points', 'integer')]);
    formats({ email: [EMAIL, 'email is not a valid e-mail address'] })(endpoint);
  },
  'unique-email': (endpoint) => {
    replace(endpoint, [field('id', 'string', identifier), field('email', 'string', { required: true }), field('name', 'string'), field('age', 'integer')]);
    endpoint.verify = (p, record, row) => {
      if (record.email === undefined || record.email === null) return;
      for (const other of endpoint.store.rows.get(p.table).all) {
        if (other !== row && other.email === record.email) throw new Error('email has already been taken');
      }
    };
  },
  'batches-of-one': speed({ maximum_batch_size: 1 }),
  'batches-of-three': speed({ maximum_batch_size: 3, maximum_parallel_batches: 2 }),
  'one-batch-at-a-time': (endpoint) => {
    speed({ maximum_parallel_batches: 1 })(endpoint);
    let busy = false;
    const run = endpoint.methods.sync_batch;
    endpoint.methods.sync_batch = async (params) => {
      if (busy) throw Object.assign(new Error('another batch is in progress'), { code: -32000 });
      busy = true;
      try {
        await new Promise((resolve) => { setTimeout(resolve, 2); });
        return await run(params);
      } finally {
        busy = false;
      }
    };
  },
  'few-records-per-second': speed({ maximum_batch_size: 50, maximum_records_per_second: 400 }),
  'slow-replies': (endpoint) => {
    let n = 0;
    endpoint.delay = () => 20 + (n++ * 7) % 31;
  },
  'results-in-another-order': (endpoint) => {
    endpoint.results = (results) => results.map((r, at) => [r, (at * 7919) % results.length]).sort((a, b) => a[1] - b[1]).map(([r]) => r).reverse();
  },
  'long-foreign-messages': (endpoint) => {
    endpoint.failure = (result) => ({
      ...result,
      error_message: `E-4711: レコードを処理できませんでした。Der Datensatz wurde nicht übernommen (${result.error_message}). ${'Bitte prüfen Sie die Angaben. '.repeat(20)}`,
    });
  },
  'null-message-and-more-members': (endpoint) => {
    let n = 0;
    endpoint.success = (result) => ({ ...result, error_message: null, id: `rec_${++n}`, created: false, warnings: [] });
    endpoint.failure = (result) => ({ ...result, code: 'E_REFUSED', retryable: false, details: { status: 422 } });
  },
  'content-type-with-charset': (endpoint) => {
    endpoint.headers = { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store', 'X-Request-Id': 'c0ffee' };
  },
  'closes-connections': (endpoint) => {
    endpoint.headers = { Connection: 'close' };
  },
  'insert-only': operations('insert'),
  'update-only': operations('update'),
  'upsert-only': operations('upsert'),
  'mirror-only': operations('mirror', 'upsert'),
  'no-mirror': operations('upsert', 'insert', 'update'),
  'skips-are-successes': (endpoint) => {
    endpoint.failure = (result) => (/already exists|not present/.test(result.error_message) ? { identifier: result.identifier, success: true } : result);
  },
  'skips-are-successes-with-message': (endpoint) => {
    endpoint.failure = (result) => (/already exists|not present/.test(result.error_message) ? { ...result, success: true } : result);
  },
  'append-like': (endpoint) => {
    // Events: each is written once, and a repeated one is acknowledged.
    replace(endpoint, [
      field('event_id', 'string', identifier), field('event', 'string', { required: true, updateable: false }),
      field('occurred_at', 'date_time', { updateable: false }), field('amount', 'decimal', { updateable: false }),
    ], { operations: ['insert'] });
    habits['skips-are-successes'](endpoint);
  },
  'three-identifiers': (endpoint) => {
    replace(endpoint, [
      field('crm_id', 'string', identifier), field('customer_number', 'integer', identifier), field('email', 'string', identifier),
      field('name', 'string'), field('city', 'string'), field('points', 'integer'),
    ]);
  },
  'fixed-when-created': (endpoint) => {
    // Some fields are only written when a record is created, others only later.
    replace(endpoint, [
      field('id', 'string', identifier), field('name', 'string', { required: true }), field('signup_source', 'string', { updateable: false }),
      field('created_by', 'string', { updateable: false }), field('churn_reason', 'string', { createable: false }), field('visits', 'integer'),
    ]);
    endpoint.verify = (p, record, row) => {
      for (const f of endpoint.tables.contact.fields) {
        const v = record[f.field_api_name];
        if (f.identifier || v === undefined) continue;
        if (row && !f.updateable && v !== row[f.field_api_name]) throw new Error(`${f.field_api_name} cannot be changed`);
        if (!row && !f.createable && v !== null) throw new Error(`${f.field_api_name} cannot be set on create`);
      }
    };
  },
  'look-alike-keys-refused': (endpoint) => {
    const folded = (v) => (typeof v === 'string' ? v.normalize('NFC').toLowerCase().trim().replace(/\s+/g, ' ') : v);
    endpoint.verify = (p, record, row) => {
      if (row) return;
      for (const other of endpoint.store.rows.get(p.table).all) {
        if (folded(other[p.name]) === folded(record[p.name])) throw new Error(`a record with a key like ${JSON.stringify(record[p.name])} already exists`);
      }
    };
  },
  'duplicates-in-a-batch-refused': (endpoint) => {
    endpoint.prepare = (p, records) => {
      const count = new Map();
      for (const r of records) count.set(r[p.name], (count.get(r[p.name]) ?? 0) + 1);
      return (record) => (record[p.name] !== undefined && count.get(record[p.name]) > 1 ? 'the same identifier is in this batch twice' : '');
    };
  },
  'many-required': (endpoint) => {
    for (const f of endpoint.tables.contact.fields.slice(0, 12)) f.required = true;
  },
};
