"""The simulated destination."""

from . import http
from .program import Process
from .service import Fault


class Destination:
    """A custom destination that obeys every rule of the protocol: destkit destsim.

    arguments are flags of the command, such as "--preset", "crm". url is the endpoint.
    Use it in a with statement, or call stop.
    """

    def __init__(self, *arguments, env=None):
        self._process = Process("destsim", arguments, env)
        self.url = self._process.url
        self.control_url = self._process.first["control_url"]

    def records(self, object):
        """Return the stored records of an object."""
        return http.pages(self.control_url + "/records", "records", {"object": object})

    def requests(self, **filters):
        """Return the calls that it has received, oldest first.

        filters are method, object, operation, status and fault.
        """
        return http.pages(self.control_url + "/journal", "entries", filters)

    def arm_fault(self, kind, **settings):
        """Make calls fail: arm_fault("throttle", seconds=2, when={"method": "sync_batch", "first": 2})."""
        return Fault(self.control_url, self.control("POST", "/faults", {"kind": kind, **settings}))

    def reset(self):
        """Delete all records, faults and changes of the schema."""
        self.control("DELETE", "/faults")
        self.control("POST", "/reset")

    def control(self, method, path, body=None):
        """Call the control API; GET / lists what it has."""
        return http.call(method, self.control_url + path, body)

    def log(self):
        """Return what it has written to standard error."""
        return self._process.log()

    def stop(self):
        """Stop it."""
        self._process.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
