"""Starts the endpoint: settings come from the environment."""

import os
import signal
import sys
import threading

from hooks import JudgedStore, hooks_handler
from server import Secret, Server, endpoint_handler
from store import Store


def start(token, host="127.0.0.1", port=8080, hooks_port=None, log=print):
    """Start the endpoint; the hooks are None without a port for them."""
    if not token:
        raise ValueError("set DESTINATION_TOKEN to the token that the service sends")
    secret = Secret(token)
    if hooks_port is None:
        hooks, store = None, Store()
    else:
        store = JudgedStore()
        hooks = Server(("127.0.0.1", hooks_port), hooks_handler(store, secret, token))
    endpoint = Server((host, port), endpoint_handler(store, secret, log))
    for server in filter(None, (endpoint, hooks)):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return endpoint, hooks, store


def _print_line(line):
    sys.stdout.write(line + "\n")  # in one piece, whatever other threads print
    sys.stdout.flush()


def main():
    """Run until a signal asks to stop."""
    setting = os.environ.get
    hooks_port = setting("HOOKS_PORT")
    try:
        endpoint, hooks, store = start(
            setting("DESTINATION_TOKEN"),
            setting("HOST") or "127.0.0.1",
            int(setting("PORT") or 8080),
            int(hooks_port) if hooks_port else None,
            _print_line,
        )
    except Exception as error:
        sys.exit(f"cannot start: {error}")
    stopped = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopped.set())
    _print_line(f"listening {endpoint.url}")
    if hooks:
        _print_line(f"hooks {hooks.url}")
    stopped.wait()
    for server in filter(None, (endpoint, hooks)):
        server.stop()
    store.close()


if __name__ == "__main__":
    main()
