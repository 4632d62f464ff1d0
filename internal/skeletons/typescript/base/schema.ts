// What this destination offers: its objects, their fields and the operations.
// Change this file first; the tables, the checks of values and the replies of the
// planning methods all follow it.

export type FieldType = 'boolean' | 'decimal' | 'float' | 'integer' | 'date' | 'date_time' | 'string';

export interface Field {
  field_api_name: string;
  label: string;
  type: FieldType;
  identifier: boolean;
  required: boolean;
  createable: boolean;
  updateable: boolean;
  array: boolean;
}

export interface ObjectType {
  object_api_name: string;
  label: string;
  fields: Field[];
}

const field = (name: string, label: string, type: FieldType, more: Partial<Field> = {}): Field => ({
  field_api_name: name,
  label,
  type,
  identifier: false,
  required: false,
  createable: true,
  updateable: true,
  array: false,
  ...more,
});

// An identifier matches source and destination records: unique and required.
const identifier = (name: string, label: string, type: FieldType): Field => field(name, label, type, { identifier: true, required: true });

export const objects: ObjectType[] = [
  {
    object_api_name: 'contact',
    label: 'Contact',
    fields: [
      identifier('email', 'Email', 'string'),
      field('name', 'Name', 'string'),
      field('age', 'Age', 'integer'),
      field('balance', 'Balance', 'decimal'),
      field('score', 'Score', 'float'),
      field('subscribed', 'Subscribed', 'boolean'),
      field('birthday', 'Birthday', 'date'),
      field('last_seen', 'Last seen', 'date_time'),
      field('tags', 'Tags', 'string', { array: true }),
    ],
  },
  {
    object_api_name: 'account',
    label: 'Account',
    fields: [
      identifier('account_id', 'Account ID', 'integer'),
      field('name', 'Name', 'string'),
      field('employees', 'Employees', 'integer'),
    ],
  },
];

// "mirror" means that upsert and delete batches are taken.
export const operations = ['upsert', 'insert', 'update', 'mirror'];

// What one sync may send. The service keeps to it, and batch.ts holds it.
export const speed = {
  maximum_batch_size: 1000,
  maximum_parallel_batches: 8,
  maximum_records_per_second: 10000,
};
