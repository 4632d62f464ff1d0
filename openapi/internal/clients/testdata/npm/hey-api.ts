import { client } from './generated/hey-api/client.gen.js';
import * as sdk from './generated/hey-api/sdk.gen.js';
import type { _Error as ServiceError, SyncWrite } from './generated/hey-api/types.gen.js';
import { base, endpoint, ok, partial, roundTrip, token, type Failure } from './scenario.js';

client.setConfig({ baseUrl: base, auth: (scheme) => (scheme.scheme === 'bearer' ? token : undefined) });

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

const failure = (http: number, error: ServiceError | undefined): Failure => ({
  http,
  ...ok(error, 'a failure has a body'),
});

roundTrip({
  async counts() {
    const query = { per_page: 100 };
    const sources = await sdk.listSources({ query, throwOnError: true });
    const destinations = await sdk.listDestinations({ query, throwOnError: true });
    const syncs = await sdk.listSyncs({ query, throwOnError: true });
    return {
      sources: Number(sources.data.pagination.total_records),
      destinations: Number(destinations.data.pagination.total_records),
      syncs: Number(syncs.data.pagination.total_records),
    };
  },
  async sourceTypes() {
    const { data } = await sdk.listSourceTypes({ query: { per_page: 100 }, throwOnError: true });
    return data.data.map((t) => ({
      service_name: t.service_name,
      rules: t.configuration_fields.fields.flatMap((f) => f.rules).length,
    }));
  },
  async createSource() {
    const { data } = await sdk.createSource({
      body: { connection: { name: 'Rows', type: 'generator', credentials: { rows: 3, seed: 7 } } },
      throwOnError: true,
    });
    return data.data.id;
  },
  async tables(source) {
    const { data } = await sdk.listSourceObjects({ path: { source_id: source }, throwOnError: true });
    return data.data.map((o) => (o.type === 'table' ? o.table_name : o.name));
  },
  async createDestination() {
    const { data } = await sdk.createDestination({
      body: {
        service_connection: {
          name: 'Endpoint',
          type: 'custom_api',
          credentials: { api_version: 1, webhook_url: endpoint },
        },
      },
      throwOnError: true,
    });
    return { id: data.data.id, objects: data.data.objects.map((o) => o.full_name) };
  },
  async createSync(source, destination) {
    sent = newSync(source, destination);
    const { data } = await sdk.createSync({ body: sent, throwOnError: true });
    if (data.status !== 'created') throw new Error('the sync was only checked');
    return data.data.sync_id;
  },
  async pauseAndResume(sync) {
    for (const paused of [true, false]) {
      const { data } = await sdk.updateSync({ path: { sync_id: sync }, body: partial ? { paused } : { ...sent, paused }, throwOnError: true });
      if (data.data.paused !== paused) throw new Error('paused was not kept');
    }
  },
  async sync(id) {
    const { data } = await sdk.fetchSync({ path: { sync_id: id }, throwOnError: true });
    const sync = data.data;
    return { status: sync.status, mappings: sync.mappings.length, unset: [sync.field_order, sync.mappings[0]?.operation] };
  },
  async trigger(sync) {
    const { data } = await sdk.triggerSync({ path: { sync_id: sync }, throwOnError: true });
    return data.data.sync_run_id;
  },
  async run(id) {
    const { data } = await sdk.fetchSyncRun({ path: { sync_run_id: id }, throwOnError: true });
    const { status, records_updated, error_code } = data.data;
    return { status, records_updated, error_code };
  },
  async records(run) {
    const { data } = await sdk.fetchSyncRunRecords({ path: { sync_run_id: run }, throwOnError: true });
    return data.data.map((r) => r.identifier);
  },
  async missing() {
    const { error, response } = await sdk.fetchSync({ path: { sync_id: 999999 } });
    return failure(response.status, error);
  },
  async refused() {
    const { error, response } = await sdk.createSync({ body: { ...sent, mappings: [] } });
    return failure(response.status, error);
  },
});
