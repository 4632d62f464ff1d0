// What the endpoint has: three objects, the first with several fields of every
// type. The third one is never named in a run.
export function field(name, type, extra = {}) {
  return {
    field_api_name: name, label: name.replaceAll('_', ' '), identifier: false, required: false,
    createable: true, updateable: true, type, array: false, ...extra,
  };
}

export const identifier = { identifier: true, required: true };

export function tables(wrong) {
  const all = {
    contact: {
      label: 'Contacts',
      operations: ['upsert', 'insert', 'update', 'mirror'],
      fields: [
        field('external_id', 'string', identifier), field('name', 'string', { required: true }),
        field('city', 'string'), field('notes', 'string'), field('points', 'integer'), field('visits', 'integer'),
        field('balance', 'decimal'), field('credit', 'decimal'), field('score', 'float'), field('ratio', 'float'),
        field('active', 'boolean'), field('subscribed', 'boolean'), field('born_on', 'date'), field('joined_on', 'date'),
        field('seen_at', 'date_time'), field('changed_at', 'date_time'),
        field('tags', 'string', { array: true }), field('lucky_numbers', 'integer', { array: true }),
      ],
    },
    order: {
      label: 'Orders',
      operations: ['upsert', 'update', 'mirror'],
      fields: [
        field('number', 'integer', identifier), field('reference', 'string', identifier), field('memo', 'string'),
        field('total', 'decimal'), field('quantity', 'integer'), field('paid', 'boolean'),
      ],
    },
    ticket: {
      label: 'Support tickets',
      operations: ['upsert', 'mirror'],
      fields: [field('key', 'string', identifier), field('subject', 'string'), field('opened_at', 'date_time')],
    },
  };
  if (wrong('object-without-identifier')) {
    // A log that is only written to: its author marked no field.
    all.ticket.fields[0] = field('key', 'string');
  }
  if (wrong('field-type-json')) {
    all.contact.fields.push(field('preferences', 'json'));
  }
  return all;
}
