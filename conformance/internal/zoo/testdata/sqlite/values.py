"""What becomes of a value on its way into its column, and back."""

import ctypes
import datetime
import html
import re

UTC = datetime.timezone.utc


def key_of(wrong, value):
    """The form in which a key is stored and looked up."""
    if not isinstance(value, str):
        return value
    if wrong("keys-folded") or wrong("keys-folded-everywhere"):
        return value.lower()  # addresses are the same in upper case
    if wrong("keys-cut-at-64"):
        return value[:64]
    if wrong("one-mailbox-one-key"):
        return re.sub(r"\+[^@]*(?=@)", "", value)
    return value


def to_column(wrong, f, value, record):
    if f["identifier"]:
        return key_of(wrong, value)
    if value is None:
        return None
    name = f["field_api_name"]
    if f["type"] == "boolean":
        return int(value)
    if name == "points" and wrong("points-clamped"):
        return max(0, min(value, 1_000_000))
    if name == "points" and wrong("points-are-text"):
        return str(value)
    if name == "notes" and wrong("notes-cut-at-120"):
        return value[:120]
    if name == "notes" and wrong("dollars-are-patterns"):
        return value.replace("$$", "$")  # as a replacement text
    if name == "notes" and wrong("entities-decoded"):
        return html.unescape(value)
    if name == "notes" and wrong("placeholders-rendered"):
        return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda m: str(record.get(m[1]) or ""), value)
    if name == "contact_email" and wrong("plus-addresses-cut"):
        return re.sub(r"\+[^@]*(?=@)", "", value)  # one mailbox, one address
    if name == "last_seen" and wrong("moments-in-local-time"):
        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return moment.astimezone().replace(tzinfo=None).isoformat()
    if name == "last_seen" and wrong("seconds-of-32-bits"):
        moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        return str(ctypes.c_int32(int(moment.timestamp())).value)
    return value


def from_column(wrong, f, value):
    if value is None:
        return None
    name = f["field_api_name"]
    if f["type"] == "boolean":
        return bool(value)
    if name == "last_seen" and wrong("moments-in-local-time"):
        moment = datetime.datetime.fromisoformat(value).astimezone(UTC)
        return moment.isoformat().replace("+00:00", "Z")
    if name == "last_seen" and wrong("seconds-of-32-bits"):
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=int(value))).isoformat() + "Z"
    return value
