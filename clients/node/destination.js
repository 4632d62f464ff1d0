// The simulated destination.
import { Fault } from './fault.js';
import { call, pages } from './http.js';
import { Server } from './program.js';

export async function startDestination({ args = [], env } = {}) {
  return new Destination(await Server.start('destsim', args, { env }));
}

class Destination {
  constructor(server) {
    this.server = server;
    this.url = server.url;
    this.controlUrl = server.first.control_url;
  }

  records(object) {
    return pages(`${this.controlUrl}/records`, 'records', { object });
  }

  requests(filters = {}) {
    return pages(`${this.controlUrl}/journal`, 'entries', filters);
  }

  async armFault(kind, settings = {}) {
    return new Fault(this.controlUrl, await this.control('POST', '/faults', { kind, ...settings }));
  }

  async reset() {
    await this.control('DELETE', '/faults');
    await this.control('POST', '/reset');
  }

  control(method, path, body) {
    return call(method, this.controlUrl + path, { body });
  }

  log() {
    return this.server.log();
  }

  stop() {
    return this.server.stop();
  }
}
