"""The program: finding, starting and stopping it."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
import threading
import weakref

from .errors import DestkitError

# What decides in the shell of a developer must not decide in a test.
_SETTINGS = ("DESTKIT_PERSONAL_ACCESS_TOKEN", "DESTKIT_WORKSPACE_API_KEY", "DESTKIT_MASTER_KEY", "DESTKIT_TOKEN")
_LOG_SHOWN = 64 * 1024  # bytes; the end of a long log is what matters

running = weakref.WeakSet()


def find():
    """Return the path of the program: DESTKIT_BIN, or destkit in PATH."""
    chosen = os.environ.get("DESTKIT_BIN")
    program = shutil.which(chosen or "destkit")
    if program:
        return program
    if chosen:
        raise DestkitError(f"DESTKIT_BIN is {chosen}, which is no program that can be started: set it to the path of destkit")
    raise DestkitError("destkit is not in PATH: install it (https://github.com/destkit/destkit), or set DESTKIT_BIN to its path")


class Process:
    """A server of destkit that ends with this process, however that ends."""

    def __init__(self, command, arguments=(), env=None, timeout=60):
        program = find()
        self.command = command
        self._log = _Log()
        settings = {name: value for name, value in os.environ.items() if name not in _SETTINGS}
        settings.update(env or {})
        try:
            # The server stops when the pipe of its standard input closes. The system
            # closes it when this process ends, even by SIGKILL.
            self._process = subprocess.Popen(
                [program, command, "--addr", "127.0.0.1:0", "--json", "--exit-with-stdin", *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log.writer, env=settings,
            )
        except OSError as error:
            self._log.close()
            raise DestkitError(f"{program} does not start: {error.strerror}") from error
        running.add(self)
        atexit.register(self.stop)
        late = threading.Timer(timeout, self._process.kill)
        late.start()
        line = self._process.stdout.readline()
        late.cancel()
        try:
            self.first = json.loads(line)
            self.url = self.first["url"]
        except (ValueError, TypeError, KeyError):
            # Its standard input stays open until it has said what is wrong.
            try:
                status = self._process.wait(0 if line else timeout)
            except subprocess.TimeoutExpired:
                status = None
            message = self._complaint(program, line, status)
            self.stop()
            raise DestkitError(message) from None

    def _complaint(self, program, line, status):
        said = self.log().strip()
        if "unknown flag" in said:
            return f"{program} is too old for these helpers ({_version(program)}): install a newer destkit. It says: {said}"
        if line or status == 0:
            return f"{program} {self.command} does not answer as destkit does: set DESTKIT_BIN to the path of destkit. It printed: {line.decode(errors='replace').strip()!r}"
        return f"{program} {self.command} did not start (exit status {status}): {said}"

    @property
    def pid(self):
        """The id of the process."""
        return self._process.pid

    @property
    def ended(self):
        """Whether it has ended."""
        return self._process.poll() is not None

    def log_size(self):
        """Return the length of the log in bytes."""
        return self._log.size()

    def log(self, since=0):
        """Return what the server has written to standard error from byte since on."""
        return self._log.text(since)

    def stop(self, timeout=15):
        """Stop the server. A second call does nothing."""
        running.discard(self)
        atexit.unregister(self.stop)
        self._process.stdin.close()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()


class _Log:
    """A file for standard error, read by a handle with a position apart from the writer's."""

    def __init__(self):
        handle, self._path = tempfile.mkstemp(prefix="destkit-", suffix=".log")
        self.writer, self._reader = os.fdopen(handle, "wb"), open(self._path, "rb")
        if os.name == "posix":  # nothing is left behind after a crash
            os.unlink(self._path)
        self._last = None  # the text, once it is closed

    def size(self):
        return 0 if self._last is not None else self._reader.seek(0, os.SEEK_END)

    def text(self, since=0):
        if self._last is not None:
            return self._last
        self._reader.seek(max(since, self.size() - _LOG_SHOWN))
        return self._reader.read().decode(errors="replace")

    def close(self):
        if self._last is not None:
            return
        self._last = self.text()
        self.writer.close()
        self._reader.close()
        if os.name != "posix":
            os.unlink(self._path)


def _version(program):
    try:
        result = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10)
        return result.stdout.decode(errors="replace").strip() or "it does not say its version"
    except (OSError, subprocess.TimeoutExpired):
        return "it does not say its version"
