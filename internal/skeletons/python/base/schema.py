"""What this destination offers: its objects, their fields and the operations.

Change this file first; the tables, the checks of values and the replies of the
planning methods all follow it.
"""


def field(name, label, kind, **more):
    """A field. Its type is boolean, decimal, float, integer, date, date_time or string."""
    return {
        "field_api_name": name,
        "label": label,
        "type": kind,
        "identifier": False,
        "required": False,
        "createable": True,
        "updateable": True,
        "array": False,
        **more,
    }


def identifier(name, label, kind):
    """A field that matches source and destination records: unique and required."""
    return field(name, label, kind, identifier=True, required=True)


OBJECTS = [
    {
        "object_api_name": "contact",
        "label": "Contact",
        "fields": [
            identifier("email", "Email", "string"),
            field("name", "Name", "string"),
            field("age", "Age", "integer"),
            field("balance", "Balance", "decimal"),
            field("score", "Score", "float"),
            field("subscribed", "Subscribed", "boolean"),
            field("birthday", "Birthday", "date"),
            field("last_seen", "Last seen", "date_time"),
            field("tags", "Tags", "string", array=True),
        ],
    },
    {
        "object_api_name": "account",
        "label": "Account",
        "fields": [
            identifier("account_id", "Account ID", "integer"),
            field("name", "Name", "string"),
            field("employees", "Employees", "integer"),
        ],
    },
]

# "mirror" means that upsert and delete batches are taken.
OPERATIONS = ["upsert", "insert", "update", "mirror"]

# What one sync may send. The service keeps to it, and batch.py holds it.
SPEED = {
    "maximum_batch_size": 1000,
    "maximum_parallel_batches": 8,
    "maximum_records_per_second": 10000,
}
