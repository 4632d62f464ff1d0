"""Checks one value against the field that it is for.

What comes back can be stored as it is; what does not fit is an error with a message
for the sync history.
"""

import datetime
import math
import re


class Refused(Exception):
    """A record that cannot be stored; the message is for users."""


MOST_IDENTIFIER = 500  # characters; indexes of databases end at some length
DECIMAL = re.compile(r"[+-]?[0-9]{1,1000}(\.[0-9]{1,1000})?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?Z")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check(field, value):
    """Give the value if the field can hold it."""
    name = field["field_api_name"]
    if value is None:
        if field["required"]:
            raise Refused(f"{name} is required")
        return None
    if not field["array"]:
        return _scalar(field, name, value)
    if not isinstance(value, list):
        raise Refused(f"{name} must be a list")
    return [_scalar(field, name, item) for item in value]


def _scalar(field, name, value):
    holds, words = _KINDS[field["type"]]
    if not holds(value):
        raise Refused(f"{name} must be {words}")
    if field["identifier"] and isinstance(value, str) and not 1 <= len(value) <= MOST_IDENTIFIER:
        raise Refused(f"{name} must have 1 to {MOST_IDENTIFIER} characters")
    return float(value) if field["type"] == "float" else value


def _is_float(value):
    if type(value) not in (int, float):  # a bool is an int, too
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_date(text):
    try:
        return bool(DATE.fullmatch(text)) and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


_KINDS = {
    "boolean": (lambda v: isinstance(v, bool), "true or false"),
    "decimal": (
        lambda v: isinstance(v, str) and DECIMAL.fullmatch(v),
        'a decimal number as text, such as "12.50"',
    ),
    "float": (_is_float, "a finite number"),
    "integer": (lambda v: type(v) is int and -(2**63) <= v < 2**63, "a whole number of 64 bits"),
    "date": (lambda v: isinstance(v, str) and _is_date(v), 'a date such as "2021-03-29"'),
    "date_time": (
        lambda v: isinstance(v, str) and DATE_TIME.fullmatch(v) and _is_date(v[:10]),
        'a moment in UTC such as "2021-03-29T16:32:23Z"',
    ),
    "string": (
        lambda v: isinstance(v, str) and not UNSTORABLE.search(v),
        "text without NUL characters and lone surrogates",
    ),
}
