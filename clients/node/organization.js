import { setTimeout as pause } from 'node:timers/promises';
import { DestkitError } from './errors.js';
import { call, pages } from './http.js';

const ENDED = ['completed', 'failed', 'skipped', 'cancelled', 'canceled'];

// An organization of one test, apart from all others.
export class Organization {
  constructor(service, made) {
    this.service = service;
    this.apiUrl = service.apiUrl;
    this.id = made.organization_id;
    this.workspaceId = made.workspace_id;
    this.workspaceApiKey = made.workspace_api_key;
    this.personalAccessToken = made.personal_access_token;
    this.workspaces = made.workspaces.map(({ id, name, api_key }) => ({ id, name, apiKey: api_key }));
  }

  call(method, path, body, { token = this.workspaceApiKey, query } = {}) {
    return call(method, this.apiUrl + path, { body, token, query });
  }

  async addDestination(destination, name = 'Destination') {
    const url = typeof destination === 'string' ? destination : destination.url;
    const connection = { name, type: 'custom_api', credentials: { api_version: 1, webhook_url: url } };
    return (await this.call('POST', '/destinations', { service_connection: connection })).data.id;
  }

  async runSync(syncId, { full = false, timeout = 60_000 } = {}) {
    const body = full ? { force_full_sync: true } : undefined;
    const { sync_run_id: id } = (await this.call('POST', `/syncs/${syncId}/trigger`, body)).data;
    for (const deadline = Date.now() + timeout; ; await pause(50)) {
      const run = (await this.call('GET', `/sync_runs/${id}`)).data;
      if (ENDED.includes(run.status.toLowerCase())) return run;
      if (Date.now() > deadline) {
        throw new DestkitError(`run ${id} of sync ${syncId} has not ended within ${timeout} ms: its status is ${run.status}`);
      }
    }
  }

  async armFault(kind, settings = {}) {
    return this.service.armFault(kind, { organization_id: this.id, ...settings });
  }

  requests(filters) {
    return this.#journal('requests', filters);
  }

  calls(filters) {
    return this.#journal('calls', filters);
  }

  #journal(name, filters) {
    return pages(`${this.service.controlUrl}/journal/${name}`, 'entries', { organization: this.id, ...filters });
  }

  async mails(filters) {
    return (await this.service.control('GET', '/mailbox', undefined, { organization: this.id, ...filters })).mails;
  }

  async reset() {
    await this.service.control('POST', `/organizations/${this.id}/reset`);
  }

  async delete() {
    await this.service.control('DELETE', `/organizations/${this.id}`);
  }
}
