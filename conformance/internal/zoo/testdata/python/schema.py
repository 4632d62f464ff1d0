"""What the endpoint has: three objects, the first with several fields of every
type. The third one is never named in a run."""


def field(name, kind, **extra):
    """The eight properties of a field."""
    return {
        "field_api_name": name, "label": name.replace("_", " "), "identifier": False, "required": False,
        "createable": True, "updateable": True, "type": kind, "array": False, **extra,
    }


IDENTIFIER = {"identifier": True, "required": True}


def tables(wrong):
    return {
        "person": {
            "label": "People",
            "operations": ["upsert", "insert", "update", "mirror"],
            "fields": [
                field("person_key", "string", **IDENTIFIER), field("name", "string", required=True),
                field("city", "string"), field("bio", "string"), field("age", "integer"), field("visits", "integer"),
                field("balance", "decimal"), field("credit", "decimal"), field("height", "float"), field("weight", "float"),
                field("active", "boolean"), field("newsletter", "boolean"), field("born_on", "date"), field("joined_on", "date"),
                field("seen_at", "date_time"), field("changed_at", "date_time"),
                field("tags", "string", array=True), field("numbers", "integer", array=True),
            ],
        },
        "device": {
            "label": "Devices",
            "operations": ["upsert", "update", "mirror"],
            "fields": [
                field("serial", "integer", **IDENTIFIER), field("tag", "string", **IDENTIFIER),
                field("owner", "string"), field("room", "string"), field("price", "decimal"), field("slots", "integer"),
            ],
        },
        "visit": {
            "label": "Visits",
            "operations": ["insert", "upsert"],
            "fields": [field("visit_key", "string", **IDENTIFIER), field("page", "string"), field("at", "date_time")],
        },
    }
