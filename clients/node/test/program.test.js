// Errors, and the end of a server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, DestkitError, startDestination, startService } from '@destkit/test';

const folder = mkdtempSync(join(tmpdir(), 'destkit-test-'));
const service = await startService();
after(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

function script(name, text) {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${text}`, { mode: 0o755 });
  return file;
}

// fails starts the service with other settings; it must fail with a message.
async function fails(settings, message, options) {
  const before = { PATH: process.env.PATH, DESTKIT_BIN: process.env.DESTKIT_BIN };
  const set = (values) => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(settings);
  try {
    await assert.rejects(startService(options), (error) => {
      assert.ok(error instanceof DestkitError);
      assert.match(error.message, message);
      return true;
    });
  } finally {
    set(before);
  }
}

test('a missing program', () =>
  fails({ PATH: folder, DESTKIT_BIN: undefined }, /^destkit is not in PATH: install it .* or set DESTKIT_BIN to its path$/));

test('another program', async () => {
  await fails({ DESTKIT_BIN: join(folder, 'gone') }, /^DESTKIT_BIN is .*gone, which is no program that can be started/);
  await fails({ DESTKIT_BIN: script('other', 'echo hello\n') }, /other serve does not answer as destkit does: .* It printed: "hello"$/);
});

test('an old program', () => {
  const old = script('old', '[ "$1" = --version ] && echo destkit v0.1.0 && exit\necho "unknown flag: --exit-with-stdin" >&2\nexit 2\n');
  return fails({ DESTKIT_BIN: old }, /old is too old for these helpers \(destkit v0\.1\.0\): install a newer destkit/);
});

test('a failed start', () => fails({}, /serve did not start \(exit status 2\): .*--dialect "spoken"/, { args: ['--dialect', 'spoken'] }));

test('stop is clean and repeatable', async () => {
  const destination = await startDestination({ args: ['--preset', 'crm'] });
  await destination.stop();
  await destination.stop();
  assert.equal(destination.server.exitCode, 0);
});

test('organizations are apart', async () => {
  const first = await service.newOrganization();
  const second = await service.newOrganization({ workspaces: ['A', 'B'] });
  assert.deepEqual(second.workspaces.map((workspace) => workspace.name), ['A', 'B']);
  const fault = await first.armFault('status', { status: 500, operation: 'listSyncs' });
  assert.deepEqual((await second.call('GET', '/syncs')).data, []);
  assert.deepEqual([await fault.fired(), (await first.requests()).length, (await second.requests()).length], [0, 0, 1]);
  await assert.rejects(first.call('GET', '/syncs'), (error) => error instanceof ApiError && error.status === 500);
  await fault.disarm();
  await first.reset();
  assert.deepEqual((await first.call('GET', '/syncs')).data, []);
  const invitation = { email: 'new@example.com', role: 'member', workspaces: [{ id: first.workspaceId, role: 'viewer' }] };
  await first.call('POST', '/invitations', invitation, { token: first.personalAccessToken });
  assert.deepEqual((await first.mails()).map((mail) => mail.to), [['new@example.com']]);
  assert.deepEqual(await second.mails(), []);
  await first.delete();
  await assert.rejects(first.call('GET', '/syncs'), (error) => error.status === 401);
});

test('the error of a failed test has the log', async () => {
  const failing = service.test(async ({ organization }) => {
    await organization.call('GET', '/destinations');
    assert.equal(1, 2, 'numbers differ');
  });
  assert.equal(failing.length, 0, 'jest waits for a callback of a function with parameters');
  await assert.rejects(failing(), (error) => {
    assert.match(error.message, /^numbers differ[^]*\n\nLog of destkit serve during this test:\n.*path=\/api\/v1\/destinations/);
    assert.match(error.stack, /path=\/api\/v1\/destinations/);
    return error instanceof assert.AssertionError;
  });
});

async function listening(url) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    await once(socket, 'connect');
    return true;
  } catch (error) {
    assert.equal(error.code, 'ECONNREFUSED');
    return false;
  } finally {
    socket.destroy();
  }
}

// left starts both servers in another process, lets that end, and waits for theirs.
async function left(end, then) {
  const code = `
    import { startDestination, startService } from '@destkit/test';
    console.log((await startService()).url, (await startDestination()).url);
    ${then}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'], cwd: import.meta.dirname });
  const exit = once(child, 'exit');
  const urls = String((await once(child.stdout, 'data'))[0]).trim().split(' ');
  assert.equal(urls.length, 2);
  if (end) {
    for (const url of urls) assert.ok(await listening(url));
    child.kill(end);
  }
  assert.deepEqual(await exit, end ? [null, end] : [0, null]);
  for (const url of urls) while (await listening(url)) await pause(20); // the limit is that of the whole test run
}

test('servers end when the tests are killed', { skip: process.platform === 'win32' }, () => left('SIGKILL', 'setInterval(() => {}, 1000);'));

test('a server that was not stopped does not keep the tests from ending', () => left(null, ''));
