import { call } from './http.js';

// A fault that is armed.
export class Fault {
  #url;

  constructor(controlUrl, made) {
    this.#url = `${controlUrl}/faults`;
    this.id = made.id;
  }

  // fired is how often it has made a call fail: 0 says that a test has tested nothing.
  async fired() {
    const { faults } = await call('GET', this.#url);
    return faults.find((fault) => fault.id === this.id)?.fired ?? 0;
  }

  async disarm() {
    await call('DELETE', `${this.#url}/${this.id}`);
  }
}
