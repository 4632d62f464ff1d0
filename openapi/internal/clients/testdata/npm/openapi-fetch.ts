import createClient from 'openapi-fetch';
import type { components, paths } from './generated/openapi-typescript/schema.js';
import { base, endpoint, ok, partial, roundTrip, token, type Failure } from './scenario.js';

const api = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${token}` } });

type SyncWrite = components['schemas']['SyncWrite'];

const newSync = (source: number, destination: number): SyncWrite => ({
  label: 'Customers',
  operation: 'upsert',
  source_attributes: {
    connection_id: source,
    object: { type: 'table', table_catalog: 'main', table_schema: 'main', table_name: 'generated' },
  },
  destination_attributes: { connection_id: destination, object: 'person' },
  mappings: [
    { from: { type: 'column', data: 'email' }, to: 'email', is_primary_identifier: true },
    { from: { type: 'liquid_template', data: "{{ record['last_name'] | upcase }}" }, to: 'last_name' },
  ],
});
let sent: SyncWrite;

const failure = (http: number, error: components['schemas']['Error'] | undefined): Failure => ({
  http,
  ...ok(error, 'a failure has a body'),
});

roundTrip({
  async counts() {
    const query = { per_page: 100 };
    const sources = await api.GET('/sources', { params: { query } });
    const destinations = await api.GET('/destinations', { params: { query } });
    const syncs = await api.GET('/syncs', { params: { query } });
    return {
      sources: ok(sources.data, 'listSources', sources.error).pagination.total_records,
      destinations: ok(destinations.data, 'listDestinations', destinations.error).pagination.total_records,
      syncs: ok(syncs.data, 'listSyncs', syncs.error).pagination.total_records,
    };
  },
  async sourceTypes() {
    const { data, error } = await api.GET('/source_types', { params: { query: { per_page: 100 } } });
    return ok(data, 'listSourceTypes', error).data.map((t) => ({
      service_name: t.service_name,
      rules: t.configuration_fields.fields.flatMap((f) => f.rules).length,
    }));
  },
  async createSource() {
    const { data, error } = await api.POST('/sources', {
      body: { connection: { name: 'Rows', type: 'generator', credentials: { rows: 3, seed: 7 } } },
    });
    return ok(data, 'createSource', error).data.id;
  },
  async tables(source) {
    const { data, error } = await api.GET('/sources/{source_id}/objects', { params: { path: { source_id: source } } });
    return ok(data, 'listSourceObjects', error).data.map((o) => (o.type === 'table' ? o.table_name : o.name));
  },
  async createDestination() {
    const { data, error } = await api.POST('/destinations', {
      body: {
        service_connection: {
          name: 'Endpoint',
          type: 'custom_api',
          credentials: { api_version: 1, webhook_url: endpoint },
        },
      },
    });
    const made = ok(data, 'createDestination', error).data;
    return { id: made.id, objects: made.objects.map((o) => o.full_name) };
  },
  async createSync(source, destination) {
    sent = newSync(source, destination);
    const { data, error } = await api.POST('/syncs', { body: sent });
    const reply = ok(data, 'createSync', error);
    if (reply.status !== 'created') throw new Error('the sync was only checked');
    return reply.data.sync_id;
  },
  async pauseAndResume(sync) {
    for (const paused of [true, false]) {
      const { data, error } = await api.PATCH('/syncs/{sync_id}', {
        params: { path: { sync_id: sync } },
        body: partial ? { paused } : { ...sent, paused },
      });
      if (ok(data, 'updateSync', error).data.paused !== paused) throw new Error('paused was not kept');
    }
  },
  async sync(id) {
    const { data, error } = await api.GET('/syncs/{sync_id}', { params: { path: { sync_id: id } } });
    const sync = ok(data, 'fetchSync', error).data;
    return { status: sync.status, mappings: sync.mappings.length, unset: [sync.field_order, sync.mappings[0]?.operation] };
  },
  async trigger(sync) {
    const { data, error } = await api.POST('/syncs/{sync_id}/trigger', { params: { path: { sync_id: sync } } });
    return ok(data, 'triggerSync', error).data.sync_run_id;
  },
  async run(id) {
    const { data, error } = await api.GET('/sync_runs/{sync_run_id}', { params: { path: { sync_run_id: id } } });
    const { status, records_updated, error_code } = ok(data, 'fetchSyncRun', error).data;
    return { status, records_updated, error_code };
  },
  async records(run) {
    const { data, error } = await api.GET('/sync_runs/{sync_run_id}/records', { params: { path: { sync_run_id: run } } });
    return ok(data, 'fetchSyncRunRecords', error).data.map((r) => r.identifier);
  },
  async missing() {
    const { error, response } = await api.GET('/syncs/{sync_id}', { params: { path: { sync_id: 999999 } } });
    return failure(response.status, error);
  },
  async refused() {
    const { error, response } = await api.POST('/syncs', { body: { ...sent, mappings: [] } });
    return failure(response.status, error);
  },
});
