// One connection for each database, with promises.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { encode, parse } from '../node/json.mjs';

const driver = spawn('python3', [fileURLToPath(new URL('driver.py', import.meta.url))], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map();
let calls = 0;
createInterface({ input: driver.stdout }).on('line', (line) => {
  const { id, ...answer } = parse(line);
  waiting.get(id)(answer);
  waiting.delete(id);
});

export class Database {
  constructor(name) {
    this.name = name;
    this.last = Promise.resolve();
  }

  // many runs statements, [sql, arguments], one after the other.
  async many(statements) {
    const id = ++calls;
    const { answers } = await new Promise((resolve) => {
      waiting.set(id, resolve);
      driver.stdin.write(`${encode({ id, database: this.name, statements })}\n`);
    });
    return answers;
  }

  async all(sql, args = []) {
    const [answer] = await this.many([[sql, args]]);
    if (answer.error) throw new Error(`SQLITE_ERROR: ${answer.error}`);
    return answer.rows;
  }

  // alone runs work while no other work runs.
  alone(work) {
    const run = this.last.then(work);
    this.last = run.catch(() => {});
    return run;
  }
}
