"""JSON over HTTP, without proxies: all servers are on this machine."""

import json
import urllib.error
import urllib.parse
import urllib.request

from .errors import ApiError, DestkitError

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(method, url, body=None, token=None, query=None, timeout=60):
    """Send one request and return the decoded JSON of its response.

    body is sent as JSON, or as it is when it is bytes. Raises ApiError for a status of
    400 or more, and DestkitError when there is no response within timeout seconds.
    """
    query = {name: value for name, value in (query or {}).items() if value is not None}
    if query:
        url += "?" + urllib.parse.urlencode(query)
    headers = {}
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    if token:
        headers["Authorization"] = "Bearer " + token
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with _opener.open(request, timeout=timeout) as response:
            return _decode(response.read())
    except urllib.error.HTTPError as error:
        with error:
            answer = _decode(error.read())
        message = answer.get("message") if isinstance(answer, dict) else None
        raise ApiError(f"{method} {url}: {error.code} {message or answer}", error.code, answer) from None
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise DestkitError(f"{method} {url}: no response: {reason}") from error


def pages(url, name, query):
    """Return the items called name of all pages of a list with a cursor."""
    items, after = [], None
    while True:
        page = call("GET", url, query={**query, **({} if after is None else {"after": after})})
        items += page[name] or []
        after = page.get("next")
        if after is None:
            return items


def _decode(data):
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")
