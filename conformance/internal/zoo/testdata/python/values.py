"""Values: whether one fits its field, and what goes into its column."""

import datetime
import decimal
import json
import math
import re
import urllib.parse


def well_formed(text):
    try:
        text.encode("utf-8")
        return True
    except UnicodeEncodeError:  # half a surrogate pair
        return False


FITS = {
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool) and -(2**63) <= v < 2**63,
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v),
    "decimal": lambda v: isinstance(v, str) and re.fullmatch(r"-?\d+(\.\d+)?", v),
    "date": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", v),
    "date_time": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v),
    "string": lambda v: isinstance(v, str) and well_formed(v),
}


def check(f, value):
    """Raises ValueError when a value does not fit its field."""
    name = f["field_api_name"]
    if value is None:
        if f["required"]:
            raise ValueError(f"{name} is required")
        return
    items = [value]
    if f["array"]:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be an array")
        items = value
    if not all(FITS[f["type"]](v) for v in items):
        raise ValueError(f"{name} is no valid {f['type']}")


COLUMNS = {"boolean": "INTEGER", "integer": "INTEGER", "float": "REAL"}


def column_type(wrong, f):
    """The type of a column, as CREATE TABLE has it."""
    if f["array"]:
        return "TEXT"
    if wrong("string-columns") and f["type"] == "string" and not f["identifier"]:
        return "STRING"  # no type of SQLite's, so numbers are numbers
    if wrong("numeric-columns") and f["type"] == "decimal":
        return "NUMERIC(18, 4)"
    if wrong("key-ignores-case") and f["identifier"]:
        return "TEXT COLLATE NOCASE"
    return COLUMNS.get(f["type"], "TEXT")


def to_column(wrong, f, value):
    """What is stored of a value that fits."""
    if wrong("everything-is-text"):
        return str(value)
    if value is None:
        return None
    if f["array"]:
        if wrong("tags-as-a-set"):
            value = sorted(set(value))
        return json.dumps(value)
    kind = f["type"]
    if kind == "string":
        return to_text(wrong, f, value)
    if kind == "integer" and wrong("int-of-float") and not f["identifier"]:
        return int(float(value)) if abs(value) < 2**62 else value
    if kind == "decimal" and wrong("rounded-to-cents"):
        return str(decimal.Decimal(value).quantize(decimal.Decimal("0.01")))
    if kind == "date_time" and wrong("naive-timestamps"):
        seconds = datetime.datetime.fromisoformat(value.rstrip("Z")).timestamp()
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    if kind == "date_time" and wrong("moments-to-the-minute"):
        return value[:16] + ":00Z"
    if kind == "boolean":
        return int(value)
    return value


def to_text(wrong, f, value):
    if wrong("keys-stripped") and f["identifier"]:
        return value.strip()
    if f["identifier"]:
        return value
    if wrong("latin-1-columns"):
        return value.encode("latin-1", "replace").decode("latin-1")
    if wrong("three-byte-text"):
        return "".join(c if ord(c) < 0x10000 else "?" for c in value)
    if wrong("form-encoded"):
        return urllib.parse.unquote_plus(value)
    if wrong("backslashes-lost"):
        return value.replace("\\", "")
    if wrong("missing-values-of-pandas") and value in ("NA", "N/A", "NaN", "NULL", "null", "None", ""):
        return None
    if wrong("cut-at-255"):
        return value[:255]
    if wrong("quotes-removed"):
        return value.replace("'", "").replace('"', "").replace(";", "")
    if wrong("spaces-collapsed"):
        return " ".join(value.split())
    if wrong("control-characters-removed"):
        return re.sub(r"[\x00-\x1f\x7f]", "", value)
    return value


def from_column(wrong, f, value):
    """What a column shows, for the read-back."""
    if value is None:
        return None
    if wrong("everything-is-text"):
        return value
    if f["array"]:
        return json.loads(value)
    if f["type"] == "boolean":
        return bool(value)
    return value
