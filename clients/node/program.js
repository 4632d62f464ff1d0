// The program: finding, starting and stopping it.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, fstatSync, mkdtempSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { DestkitError } from './errors.js';

// What decides in the shell of a developer must not decide in a test.
const SETTINGS = [
  'DESTKIT_PERSONAL_ACCESS_TOKEN', 'DESTKIT_WORKSPACE_API_KEY', 'DESTKIT_MASTER_KEY', 'DESTKIT_TOKEN',
];
const LOG_SHOWN = 64 * 1024; // bytes; the end of a long log is what matters

// find gives the path of the program: DESTKIT_BIN, or destkit in PATH.
function find() {
  const chosen = process.env.DESTKIT_BIN;
  const endings = process.platform === 'win32' ? ['.exe', ''] : [''];
  const places = chosen ? [chosen] : (process.env.PATH ?? '').split(delimiter).filter(Boolean).map((folder) => join(folder, 'destkit'));
  for (const file of places.flatMap((place) => endings.map((ending) => place + ending))) {
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not there
    }
  }
  throw new DestkitError(
    chosen
      ? `DESTKIT_BIN is ${chosen}, which is no program that can be started: set it to the path of destkit`
      : 'destkit is not in PATH: install it (https://github.com/destkit/destkit), or set DESTKIT_BIN to its path',
  );
}

// A server of destkit that ends with this process, however that ends.
export class Server {
  #child;
  #log = new Log();

  static async start(command, args, { env = {}, timeout = 60_000 } = {}) {
    const server = new Server();
    await server.#start(command, args, env, timeout);
    return server;
  }

  async #start(command, args, env, timeout) {
    const program = find();
    const settings = Object.fromEntries(Object.entries(process.env).filter(([name]) => !SETTINGS.includes(name)));
    this.command = command;
    // The server stops when the pipe of its standard input closes. The system closes it
    // when this process ends, even by SIGKILL.
    this.#child = spawn(program, [command, '--addr', '127.0.0.1:0', '--json', '--exit-with-stdin', ...args], {
      stdio: ['pipe', 'pipe', this.#log.writer],
      env: { ...settings, ...env },
    });
    this.#child.stdin.on('error', () => {}); // it has ended already
    const late = setTimeout(() => this.#child.kill('SIGKILL'), timeout);
    let line = '';
    try {
      line = await firstLine(this.#child);
      this.first = JSON.parse(line);
      if (typeof this.first?.url !== 'string') throw new DestkitError('no url');
    } catch (error) {
      if (error.code) line = error.message; // it could not be started at all
      const status = line ? null : await ended(this.#child); // its end explains it
      const said = this.log().trim();
      await this.stop();
      throw new DestkitError(complaint(program, command, line, status, said));
    } finally {
      clearTimeout(late);
    }
    this.url = this.first.url;
    // A server that was not stopped must not keep the tests from ending.
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout]) part.unref();
  }

  get ended() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get exitCode() {
    return this.#child.exitCode;
  }

  get logSize() {
    return this.#log.size;
  }

  // log gives what the server has written to standard error from byte since on.
  log(since = 0) {
    return this.#log.text(since);
  }

  // stop ends it; a second call does nothing.
  async stop(timeout = 15_000) {
    const child = this.#child;
    if (child.pid !== undefined && !this.ended) {
      child.ref();
      child.stdin.end();
      const late = setTimeout(() => child.kill('SIGKILL'), timeout);
      await ended(child);
      clearTimeout(late);
    }
    this.#log.close();
  }
}

// firstLine reads the first line of standard output; "" where there is none.
async function firstLine(child) {
  const failed = once(child, 'error').then(([error]) => Promise.reject(error));
  const line = (async () => {
    let text = '';
    child.stdout.setEncoding('utf8');
    for await (const part of child.stdout.iterator({ destroyOnReturn: false })) {
      text += part;
      if (text.includes('\n')) break;
    }
    return text.trim();
  })();
  return Promise.race([line, failed]);
}

async function ended(child) {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return child.exitCode ?? child.signalCode;
}

function complaint(program, command, line, status, said) {
  if (said.includes('unknown flag')) {
    return `${program} is too old for these helpers (${version(program)}): install a newer destkit. It says: ${said}`;
  }
  if (line || status === 0) {
    return `${program} ${command} does not answer as destkit does: set DESTKIT_BIN to the path of destkit. It printed: ${JSON.stringify(line)}`;
  }
  return `${program} ${command} did not start (exit status ${status}): ${said}`;
}

function version(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8', timeout: 10_000 });
  return stdout?.trim() || 'it does not say its version';
}

// A file for standard error.
class Log {
  #folder = mkdtempSync(join(tmpdir(), 'destkit-'));
  #reader;
  #last; // the text, once it is closed

  constructor() {
    const file = join(this.#folder, 'log');
    this.writer = openSync(file, 'a');
    this.#reader = openSync(file, 'r');
    if (process.platform !== 'win32') this.#remove(); // nothing is left behind after a crash
  }

  get size() {
    return this.#last === undefined ? fstatSync(this.#reader).size : 0;
  }

  text(since = 0) {
    if (this.#last !== undefined) return this.#last;
    const start = Math.max(since, this.size - LOG_SHOWN);
    const bytes = Buffer.alloc(Math.max(0, this.size - start));
    return bytes.toString('utf8', 0, readSync(this.#reader, bytes, 0, bytes.length, start));
  }

  close() {
    if (this.#last !== undefined) return;
    this.#last = this.text();
    closeSync(this.writer);
    closeSync(this.#reader);
    this.#remove();
  }

  #remove() {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
