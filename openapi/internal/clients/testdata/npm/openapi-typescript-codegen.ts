import * as api from './generated/openapi-typescript-codegen/index.js';
import { base, endpoint, partial, roundTrip, token, type Failure } from './scenario.js';

api.OpenAPI.BASE = base;
api.OpenAPI.TOKEN = token;

const newSync = (source: number, destination: number): api.SyncWrite => ({
  label: 'Customers',
  operation: api.SyncOperation.UPSERT,
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
let sent: api.SyncWrite;

const failed = async (call: Promise<unknown>): Promise<Failure> => {
  try {
    await call;
  } catch (problem) {
    if (!(problem instanceof api.ApiError)) throw problem;
    const body: api.Error = problem.body;
    return { http: problem.status, ...body };
  }
  throw new Error('the call did not fail');
};

roundTrip({
  async counts() {
    const sources = await api.SourcesService.listSources();
    const destinations = await api.DestinationsService.listDestinations();
    const syncs = await api.SyncsService.listSyncs();
    return {
      sources: sources.pagination.total_records,
      destinations: destinations.pagination.total_records,
      syncs: syncs.pagination.total_records,
    };
  },
  async sourceTypes() {
    const types = await api.SourcesService.listSourceTypes(1, 100);
    return types.data.map((t) => ({
      service_name: t.service_name,
      rules: t.configuration_fields.fields.flatMap((f) => f.rules).length,
    }));
  },
  async createSource() {
    const made = await api.SourcesService.createSource({
      connection: { name: 'Rows', type: 'generator', credentials: { rows: 3, seed: 7 } },
    });
    return made.data.id;
  },
  async tables(source) {
    const objects = await api.SourcesService.listSourceObjects(source);
    return objects.data.map((o) => (o.type === 'table' ? o.table_name : o.name));
  },
  async createDestination() {
    const made = await api.DestinationsService.createDestination({
      service_connection: {
        name: 'Endpoint',
        type: 'custom_api',
        credentials: { api_version: 1, webhook_url: endpoint },
      },
    });
    return { id: made.data.id, objects: made.data.objects.map((o) => o.full_name) };
  },
  async createSync(source, destination) {
    sent = newSync(source, destination);
    const reply = await api.SyncsService.createSync(sent);
    if (reply.status !== 'created') throw new Error('the sync was only checked');
    return reply.data.sync_id;
  },
  async pauseAndResume(sync) {
    for (const paused of [true, false]) {
      const reply = await api.SyncsService.updateSync(sync, partial ? { paused } : { ...sent, paused });
      if (reply.data.paused !== paused) throw new Error('paused was not kept');
    }
  },
  async sync(id) {
    const { data } = await api.SyncsService.fetchSync(id);
    return { status: data.status, mappings: data.mappings.length, unset: [data.field_order, data.mappings[0]?.operation] };
  },
  async trigger(sync) {
    const reply = await api.SyncsService.triggerSync(sync);
    return reply.data.sync_run_id;
  },
  async run(id) {
    const { status, records_updated, error_code } = (await api.SyncRunsService.fetchSyncRun(id)).data;
    return { status, records_updated, error_code };
  },
  async records(run) {
    const reply = await api.SyncRunsService.fetchSyncRunRecords(run);
    return reply.data.map((r) => r.identifier);
  },
  missing: () => failed(api.SyncsService.fetchSync(999999)),
  refused: () => failed(api.SyncsService.createSync({ ...sent, mappings: [] })),
});
