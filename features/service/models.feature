Feature: Models
  Models are deprecated in favour of datasets, and work until they are removed.

  @MDL-001 @must @spec @spec-2.11
  Scenario: A model shows its fields with their types
    Programs that were written for models read the dataset behind them from these fields.
    Cause: the endpoint was made thinner when it was deprecated.
    Fix: give every field of the table.
    Good: {"type":"model","id":5,"name":"Orders","description":"all","query":"SELECT 1","compiled_query":null,"created_at":"2026-01-05T09:00:00Z","updated_at":"2026-01-05T09:00:00Z","dataset_id":8,"dataset_id=":8,"source_object_id":8,"columns":[{"name":"id","type":"text"}]}
    Bad: {"id":5}

    When a client creates a model with {"name":"{this_name}","query":"SELECT 'a' AS \"id\", 7 AS \"count\"","description":"all of them"}
    Then every model shown has the members:
      | type             | string         |
      | id               | integer        |
      | name             | string         |
      | description      | string         |
      | query            | string         |
      | compiled_query   | string or null |
      | created_at       | timestamp      |
      | updated_at       | timestamp      |
      | dataset_id       | integer        |
      | source_object_id | integer        |
      | columns          | array          |
    And every column shown has the members:
      | name | string |
      | type | string |

  @MDL-002 @must @spec @spec-2.11
  Scenario: A model has the key dataset_id= with the same value
    The second key is a slip of the first service, and clients read it.
    Cause: the slip was put right.
    Fix: write the id of the dataset under "dataset_id" and under "dataset_id=".
    Good: {"dataset_id":8,"dataset_id=":8}
    Bad: {"dataset_id":8}

    When a client creates a model with {"name":"{this_name}","query":"SELECT 'a' AS \"id\"","description":"one"}
    Then "dataset_id=" of every model shown is its "dataset_id"

  @MDL-003 @must @spec @spec-4 @spec-4.1.9
  Scenario: Making a model answers created
    The endpoint is deprecated, and works as long as it is there.
    Cause: the status is that of the dataset behind it.
    Fix: answer {"status":"created","data":{…}}.
    Good: POST /sources/3/models -> 201 {"status":"created","data":{"id":5}}
    Bad: POST /sources/3/models -> 410

    When a client creates a model with {"name":"{this_name}","query":"SELECT 'a' AS \"id\"","description":"one"}
    Then each call is answered with 200 or 201
    And the status of each answer is one of "created"

  @MDL-004 @must @spec @spec-2.11 @spec-4
  Scenario: A model is shown as it was made
    A query that was rewritten is not the one that somebody has tested.
    Cause: query and compiled_query are mixed up, or texts are trimmed.
    Fix: show name, query and description as they were sent.
    Good: POST {"name":"Orders","query":"SELECT 1","description":"all"} -> {"data":{"name":"Orders","query":"SELECT 1","description":"all"}}
    Bad: POST {"name":"Orders","query":"SELECT 1","description":"all"} -> {"data":{"name":"Orders","query":"select 1;","description":null}}

    When a client creates a model with {"name":"{this_name}","query":"SELECT 'a' AS \"id\"","description":"Only one, é."}
    Then every model shown has the values:
      | name        | "{this_name}"                    |
      | query       | "SELECT 'a' AS \"id\""      |
      | description | "Only one, é."              |

  @MDL-007 @must @published @spec-4 @spec-7.1
  Scenario: A model that cannot be is refused
    A model without a query, or of a source that is not there, can never be read.
    Cause: the body is stored before it is checked.
    Fix: answer 400 to a wrong body and 404 to an unknown source.
    Good: POST /sources/3/models {"name":"Orders"} -> 400 {"status":"error","message":"…"}
    Bad: POST /sources/3/models {"name":"Orders"} -> 201

    When a client makes each call with its own token:
      | POST /sources/{source}/models | {"name":"{this_name}"} |
      | POST /sources/{source}/models | {"name":"{this_name}","query":"no such query"} |
      | POST /sources/{nobody}/models | {"name":"{this_name}","query":"SELECT 1"} |
    Then each call is answered with 400 or 404
