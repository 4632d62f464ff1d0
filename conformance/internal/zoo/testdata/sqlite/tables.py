"""What can be written: customers, with their tags in a second table, devices, which
have two identifiers, and subscriptions, of which one field is required."""


def field(name, kind, **extra):
    return {
        "field_api_name": name, "label": name.replace("_", " "), "identifier": False, "required": False,
        "createable": True, "updateable": True, "type": kind, "array": False, **extra,
    }


KEY = {"identifier": True, "required": True}
OPERATIONS = ["upsert", "insert", "update", "mirror"]


def tables():
    return {
        "customers": {
            "label": "Customers", "operations": OPERATIONS, "fields": [
                field("email", "string", **KEY), field("full_name", "string", required=True),
                field("city", "string"), field("group", "string"), field("notes", "string"), field("contact_email", "string"),
                field("points", "integer"), field("balance", "decimal"), field("rating", "float"), field("subscribed", "boolean"),
                field("birthday", "date"), field("last_seen", "date_time"), field("tags", "string", array=True),
            ],
        },
        "devices": {
            "label": "Devices", "operations": OPERATIONS, "fields": [
                field("serial", "string", **KEY), field("asset_tag", "string", **KEY),
                field("owner", "string"), field("room", "string"), field("slots", "integer"), field("price", "decimal"),
            ],
        },
        "subscriptions": {
            "label": "Subscriptions", "operations": ["upsert", "mirror"], "fields": [
                field("address", "string", **KEY), field("topic", "string"), field("weekly", "boolean"),
            ],
        },
    }


COLUMN = {"integer": "INTEGER", "float": "REAL", "boolean": "INTEGER"}
