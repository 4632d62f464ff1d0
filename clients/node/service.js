// The service.
import { setTimeout as pause } from 'node:timers/promises';
import { startDestination } from './destination.js';
import { DestkitError } from './errors.js';
import { Fault } from './fault.js';
import { call } from './http.js';
import { Organization } from './organization.js';
import { Server } from './program.js';

export async function startService({ args = [], env } = {}) {
  // The log names each request of the API, which explains a failed test.
  const service = new Service(await Server.start('serve', ['--log-level', 'info', ...args], { env }));
  try {
    await service.untilReady();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return service;
}

class Service {
  constructor(server) {
    this.server = server;
    this.url = server.first.url;
    this.apiUrl = server.first.api_url;
    this.controlUrl = server.first.control_url;
    this.version = server.first.version;
  }

  async untilReady(timeout = 60_000) {
    for (const deadline = Date.now() + timeout; ; await pause(50)) {
      try {
        return await call('GET', `${this.url}/readyz`);
      } catch (error) {
        if (this.server.ended || Date.now() > deadline) {
          throw new DestkitError(`the service is not ready: ${error.message}\n${this.log()}`, { cause: error });
        }
      }
    }
  }

  async newOrganization({ name = 'test', workspaces } = {}) {
    return new Organization(this, await this.control('POST', '/organizations', { name, workspaces }));
  }

  advance(duration) {
    return this.control('POST', '/clock', { advance: typeof duration === 'number' ? `${duration}ms` : duration });
  }

  settle() {
    return this.control('POST', '/settle');
  }

  seed(yaml) {
    return this.control('POST', '/seed', yaml);
  }

  async reset() {
    await this.control('POST', '/reset');
  }

  control(method, path, body, query) {
    return call(method, this.controlUrl + path, { body, query });
  }

  async armFault(kind, settings = {}) {
    return new Fault(this.controlUrl, await this.control('POST', '/faults', { kind, ...settings }));
  }

  // test wraps the body of a test: with an organization, destinations that end with it,
  // and the logs in the error of a failure. It declares no parameter, since jest waits for
  // a callback of a function that does.
  test(body) {
    return async (...rest) => {
      const begun = this.server.logSize;
      const destinations = [];
      const start = async (options) => {
        const destination = await startDestination(options);
        destinations.push(destination);
        return destination;
      };
      const organization = await this.newOrganization();
      try {
        return await body({ service: this, organization, startDestination: start }, ...rest);
      } catch (error) {
        explain(error, [`Log of destkit serve during this test:\n${this.log(begun)}`, ...destinations.map(logOf)]);
        throw error;
      } finally {
        await Promise.all(destinations.map((destination) => destination.stop()));
        if (!this.server.ended) await organization.delete();
      }
    };
  }

  log(since) {
    return this.server.log(since);
  }

  stop() {
    return this.server.stop();
  }
}

const logOf = (destination) => `Log of destkit destsim:\n${destination.log()}`;

// explain adds logs to an error. The message of an AssertionError is shown with its stack.
function explain(error, logs) {
  if (!(error instanceof Error)) return;
  const text = `\n\n${logs.map((log) => log.trimEnd()).join('\n\n')}`;
  const stack = error.stack ?? '';
  const message = error.message;
  error.message = message.trimEnd() + text;
  error.stack = stack.includes(message) ? stack.replace(message, () => error.message) : stack + text;
}
