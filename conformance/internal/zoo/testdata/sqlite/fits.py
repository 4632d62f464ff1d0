"""Whether a value fits its field."""

import math
import re


def well_formed(text):
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


FITS = {
    "string": lambda v: isinstance(v, str) and well_formed(v),
    "integer": lambda v: type(v) is int and -(2**63) <= v < 2**63,
    "float": lambda v: type(v) in (int, float) and math.isfinite(v),
    "decimal": lambda v: isinstance(v, str) and re.fullmatch(r"-?\d+(\.\d+)?", v, re.ASCII),
    "boolean": lambda v: isinstance(v, bool),
    "date": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", v, re.ASCII),
    "date_time": lambda v: isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v, re.ASCII),
}


def problem(f, value):
    """Why a value does not fit its field; "" when it does."""
    name = f["field_api_name"]
    if value is None:
        return f"{name} is required" if f["required"] else ""
    if f["array"]:
        return "" if isinstance(value, list) and all(FITS[f["type"]](v) for v in value) else f"{name} must be a list of {f['type']}"
    return "" if FITS[f["type"]](value) else f"{name} is not a {f['type']}"
