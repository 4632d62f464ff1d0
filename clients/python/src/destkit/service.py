"""The service, and organizations in it."""

import datetime
import time

from . import http
from .errors import DestkitError
from .program import Process

_ENDED = ("completed", "failed", "skipped", "cancelled", "canceled")


class Service:
    """The REST API on this machine, with everything in memory: destkit serve.

    arguments are further flags of the command, such as "--dialect", "live". url is its
    address, api_url that of the API. Use it in a with statement, or call stop.
    """

    def __init__(self, *arguments, env=None):
        # The log names each request of the API, which explains a failed test.
        self._process = Process("serve", ("--log-level", "info", *arguments), env)
        first = self._process.first
        self.url, self.api_url, self.control_url = first["url"], first["api_url"], first["control_url"]
        self.version = first["version"]
        try:
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _wait_until_ready(self, timeout=60):
        deadline = time.monotonic() + timeout
        while True:
            try:
                return http.call("GET", self.url + "/readyz", timeout=timeout)
            except DestkitError as error:
                if time.monotonic() > deadline or self._process.ended:
                    raise DestkitError(f"the service is not ready: {error}\n{self.log()}") from error
            time.sleep(0.05)

    def new_organization(self, name="test", workspaces=None):
        """Create an organization with an admin, workspaces and tokens: one for each test."""
        body = {"name": name}
        if workspaces:
            body["workspaces"] = list(workspaces)
        return Organization(self, self.control("POST", "/organizations", body))

    def advance(self, duration):
        """Move the time of the service, a timedelta or text such as "24h".

        Returns when all that was due in between has run. All organizations share the time.
        """
        if isinstance(duration, datetime.timedelta):
            duration = f"{duration.total_seconds():.9f}s"
        return self.control("POST", "/clock", {"advance": duration})

    def settle(self):
        """Wait until nothing is due and no run is active that can end by itself."""
        return self.control("POST", "/settle")

    def seed(self, text):
        """Fill the service from YAML; returns all ids and tokens by name."""
        return self.control("POST", "/seed", text.encode())

    def reset(self):
        """Delete all organizations but the first, journals, faults and mails."""
        self.control("POST", "/reset")

    def control(self, method, path, body=None, query=None):
        """Call the control API; GET / lists what it has."""
        return http.call(method, self.control_url + path, body, query=query, timeout=600)

    def log(self, since=0):
        """Return what it has written to standard error."""
        return self._process.log(since)

    def stop(self):
        """Stop it."""
        self._process.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Organization:
    """An organization of one test, apart from all others.

    id and workspace_id are numbers, workspace_api_key and personal_access_token the
    tokens, workspaces a list of id, name and api_key.
    """

    def __init__(self, service, made):
        self.service = service
        self.api_url = service.api_url
        self.id = made["organization_id"]
        self.workspace_id = made["workspace_id"]
        self.workspace_api_key = made["workspace_api_key"]
        self.personal_access_token = made["personal_access_token"]
        self.workspaces = made["workspaces"]

    def call(self, method, path, body=None, token=None, query=None):
        """Call the API with the workspace's key, or with token; returns the decoded JSON."""
        return http.call(method, self.api_url + path, body, token or self.workspace_api_key, query)

    def add_destination(self, destination, name="Destination"):
        """Create a connection to a Destination, or to the URL of an endpoint; returns its id."""
        url = getattr(destination, "url", destination)
        connection = {"name": name, "type": "custom_api", "credentials": {"api_version": 1, "webhook_url": url}}
        return self.call("POST", "/destinations", {"service_connection": connection})["data"]["id"]

    def run_sync(self, sync_id, full=False, timeout=60):
        """Trigger a sync, wait until the run has ended, and return it.

        Whether it failed is in its "status" and "error_code". Raises DestkitError when it
        takes longer than timeout seconds.
        """
        run_id = self.call("POST", f"/syncs/{sync_id}/trigger", {"force_full_sync": True} if full else None)["data"]["sync_run_id"]
        deadline = time.monotonic() + timeout
        while True:
            run = self.call("GET", f"/sync_runs/{run_id}")["data"]
            if run["status"].lower() in _ENDED:
                return run
            if time.monotonic() > deadline:
                raise DestkitError(f"run {run_id} of sync {sync_id} has not ended within {timeout} s: its status is {run['status']}")
            time.sleep(0.05)

    def arm_fault(self, kind, **settings):
        """Make calls of the API fail: arm_fault("rate_limited", operation="listSyncs", first_n=1)."""
        body = {"kind": kind, "organization_id": self.id, **settings}
        return Fault(self.service.control_url, self.service.control("POST", "/faults", body))

    def requests(self, **filters):
        """Return the requests of the API, oldest first; filters are operation, method, status and fault."""
        return self._journal("requests", filters)

    def calls(self, **filters):
        """Return the calls of destinations; filters are destination, method, outcome and status."""
        return self._journal("calls", filters)

    def _journal(self, name, filters):
        return http.pages(f"{self.service.control_url}/journal/{name}", "entries", {"organization": self.id, **filters})

    def mails(self, **filters):
        """Return the e-mails of the service, oldest first; filters are to, kind and workspace."""
        return self.service.control("GET", "/mailbox", query={"organization": self.id, **filters})["mails"]

    def reset(self):
        """Delete everything in it; the tokens stay."""
        self.service.control("POST", f"/organizations/{self.id}/reset")

    def delete(self):
        """Delete it with everything in it."""
        self.service.control("DELETE", f"/organizations/{self.id}")


class Fault:
    """A fault that is armed."""

    def __init__(self, control_url, made):
        self._url = control_url + "/faults"
        self.id = made["id"]

    @property
    def fired(self):
        """How often it has made a call fail: 0 says that a test has tested nothing."""
        return next((f["fired"] for f in http.call("GET", self._url)["faults"] if f["id"] == self.id), 0)

    def disarm(self):
        """Take it away."""
        http.call("DELETE", f"{self._url}/{self.id}")
