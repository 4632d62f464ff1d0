"""Habits that are right and unusual: what they change of an endpoint."""

import decimal
import re

from schema import IDENTIFIER, field


def only(endpoint, *fields, **extra):
    endpoint.tables["person"].update({"fields": list(fields), **extra})


def refusing(look):
    """A habit that refuses values: look(field, value) gives the message or None."""
    def habit(endpoint):
        def refuse(table, operation, f, value):
            why = look(f, value)
            if why:
                raise ValueError(why)
        endpoint.refuse = refuse
    return habit


def short_texts(f, value):
    if f["type"] == "string" and isinstance(value, str) and len(value) > 100:
        return f"{f['field_api_name']} is too long (maximum is 100 characters)"


def no_control_characters(f, value):
    if isinstance(value, str) and re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", value):
        return f"{f['field_api_name']} contains control characters"


def dates_from_1900(f, value):
    if f["type"] in ("date", "date_time") and isinstance(value, str) and value < "1900":
        return f"{f['field_api_name']}: dates before 1900-01-01 are not supported"


def integers_of_32_bits(f, value):
    for v in value if f["array"] and value else [value]:
        if f["type"] == "integer" and not f["identifier"] and isinstance(v, int) and not -(2**31) <= v < 2**31:
            return f"{f['field_api_name']}: numeric value {v} out of range"


def decimals_of_18_digits(f, value):
    if f["type"] == "decimal" and value is not None:
        exact = decimal.Decimal(value)
        if exact != exact.quantize(decimal.Decimal("0.0001"), context=decimal.Context(prec=60)) or abs(exact) >= 10**14:
            return f"{f['field_api_name']} must fit NUMERIC(18, 4)"


def nothing_empty(f, value):
    if f["field_api_name"] in ("city", "age") and value is None:
        return f"{f['field_api_name']} cannot be null, send an empty value"


def three_bytes(f, value):
    if isinstance(value, str) and any(ord(c) > 0xFFFF for c in value):
        return f"{f['field_api_name']}: characters outside the Basic Multilingual Plane are not supported"


def plans(values):
    """An enumeration that refuses everything else."""
    def look(f, value):
        if f["field_api_name"] == "status" and value is not None and value not in values:
            return f"status must be one of {', '.join(values)}"
    return look


STATUSES = ("lead", "customer", "former")


def optional_enumeration(endpoint):
    endpoint.tables["person"]["fields"].append(field("status", "string"))
    refusing(plans(STATUSES))(endpoint)


def required_enumeration(endpoint):
    endpoint.tables["person"]["fields"].append(field("status", "string", required=True))
    refusing(plans(STATUSES))(endpoint)


def keys_of_32_bits(endpoint):
    only(endpoint, field("id", "integer", **IDENTIFIER), field("name", "string", required=True), field("city", "string"), field("age", "integer"))

    def refuse(table, operation, f, value):
        if f["type"] == "integer" and value is not None and not 0 < value < 2**31:
            raise ValueError(f"{f['field_api_name']}: {value} is out of range for type integer")
    endpoint.refuse = refuse


def rows_from_before(endpoint):
    """The table is full of the author's own rows."""
    endpoint.filled = 2000


def one_field(endpoint):
    only(endpoint, field("email_hash", "string", **IDENTIFIER), operations=["upsert", "mirror"])


def parent_must_exist(endpoint):
    """A reference that only the author can give."""
    endpoint.tables["person"]["fields"].append(field("company_id", "string"))

    def refuse(table, operation, f, value):
        if f["field_api_name"] == "company_id" and value is not None and value not in ("c-1", "c-2"):
            raise ValueError(f"company_id: no company {value}")
    endpoint.refuse = refuse


HABITS = {
    "texts-of-100-characters": refusing(short_texts),
    "control-characters-refused": refusing(no_control_characters),
    "dates-from-1900": refusing(dates_from_1900),
    "integers-of-32-bits-refused": refusing(integers_of_32_bits),
    "decimals-of-18-digits": refusing(decimals_of_18_digits),
    "null-refused": refusing(nothing_empty),
    "three-byte-text-refused": refusing(three_bytes),
    "optional-enumeration": optional_enumeration,
    "required-enumeration": required_enumeration,
    "keys-of-32-bits": keys_of_32_bits,
    "rows-from-before": rows_from_before,
    "one-field": one_field,
    "parent-must-exist": parent_must_exist,
}
