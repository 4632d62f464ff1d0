Feature: Topics
  A topic is a stream of messages, known by one message of them.

  @TPC-001 @must @spec @spec-2.12
  Scenario: A topic shows its fields with their types
    Clients decode a topic into fixed types.
    Cause: the answer repeats the request.
    Fix: give every field of the table in the answers of POST and PATCH.
    Good: {"id":4,"name":"orders","description":"new ones","created_at":"2026-01-05T09:00:00Z","updated_at":"2026-01-05T09:00:00Z","schema":{"id":"string","total":"number"}}
    Bad: {"id":"4","name":"orders","sample_message":{"id":"a","total":7}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","description":"new ones","sample_message":{"id":"a","total":7}}
    Then every topic shown has the members:
      | id          | integer       |
      | name        | string        |
      | description | string        |
      | created_at  | timestamp     |
      | updated_at  | timestamp     |
      | schema      | map of string |
    When a client updates the topic with {"description":"all of them"}
    Then every topic shown has the members:
      | id          | integer       |
      | name        | string        |
      | description | string        |
      | created_at  | timestamp     |
      | updated_at  | timestamp     |
      | schema      | map of string |

  @TPC-003 @must @spec @spec-2.12 @spec-4.1.8
  Scenario: The schema has the fields of the sample message
    The fields of the schema are what a sync can map.
    Cause: the schema is read from a registry, or nested fields are made flat.
    Fix: make one entry for each field of sample_message.
    Good: POST {"sample_message":{"id":"a","total":7,"buyer":{"name":"Ann"}},…} -> {"data":{"schema":{"id":"string","total":"number","buyer":"object"}}}
    Bad: POST {"sample_message":{"id":"a","total":7,"buyer":{"name":"Ann"}},…} -> {"data":{"schema":{"id":"string","buyer.name":"string"}}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","sample_message":{"id":"a","total":7,"Paid":true,"buyer":{"name":"Ann"},"tags":["x"],"note":null}}
    Then every topic shown has the members:
      | schema | object of id, total, Paid, buyer, tags, note |
      | schema | map of string                                |

  @TPC-004 @must @spec @spec-2.12 @spec-4.1.8
  Scenario: The types of the schema are those of the values
    A number that is taken for text is written as text at the destination.
    Cause: every field is a string, or numbers are told apart by how they look.
    Fix: name strings "string" and numbers "number".
    Good: POST {"sample_message":{"id":"7","total":7,"rate":-0.5},…} -> {"data":{"schema":{"id":"string","total":"number","rate":"number"}}}
    Bad: POST {"sample_message":{"id":"7","total":7,"rate":-0.5},…} -> {"data":{"schema":{"id":"number","total":"number","rate":"float"}}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","sample_message":{"id":"7","empty":"","total":7,"rate":-0.5,"large":1e21}}
    Then every topic shown has the values:
      | schema.id    | "string" |
      | schema.empty | "string" |
      | schema.total | "number" |
      | schema.rate  | "number" |
      | schema.large | "number" |

  @TPC-005 @must @spec @spec-4 @spec-2.12
  Scenario: A topic is shown as it was made
    The name is what messages are sent to.
    Cause: names are folded, or the description is dropped.
    Fix: show name and description as they were sent.
    Good: POST {"name":"Orders","description":"new ones",…} -> {"data":{"name":"Orders","description":"new ones"}}
    Bad: POST {"name":"Orders","description":"new ones",…} -> {"data":{"name":"orders","description":null}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name_orders}","description":"new ones, é","sample_message":{"id":"a"}}
    Then every topic shown has the values:
      | name        | "{this_name_orders}" |
      | description | "new ones, é"   |
    When a client updates the topic with {}
    Then every topic shown has the values:
      | name        | "{this_name_orders}" |
      | description | "new ones, é"   |

  @TPC-007 @must @spec @spec-4
  Scenario: A change of one field leaves the others
    All fields of the change are optional; what is left out is not meant.
    Cause: the stored topic is replaced by the body.
    Fix: change what the body names, and keep the rest.
    Good: PATCH {"name":"sales"} -> {"data":{"name":"sales","description":"new ones","schema":{"id":"string"}}}
    Bad: PATCH {"name":"sales"} -> {"data":{"name":"sales","description":null,"schema":{}}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","description":"new ones","sample_message":{"id":"a","total":7}}
    And a client updates the topic with {"name":"{this_name_new}"}
    Then every topic shown has the values:
      | name        | "{this_name_new}"                      |
      | description | "new ones"                        |
      | schema      | {"id":"string","total":"number"}  |
    When a client updates the topic with {"description":"all of them"}
    And a client updates the topic with {}
    Then every topic shown has the values:
      | name        | "{this_name_new}"                      |
      | description | "all of them"                     |
      | schema      | {"id":"string","total":"number"}  |

  @TPC-008 @must @spec @spec-4.1.8 @spec-2.12
  Scenario: Another sample message makes another schema
    The schema is that of the messages that come now.
    Cause: new fields are added and old ones stay, or the schema is made once.
    Fix: derive the whole schema from the new sample_message.
    Good: PATCH {"sample_message":{"id":7}} -> {"data":{"schema":{"id":"number"}}}
    Bad: PATCH {"sample_message":{"id":7}} -> {"data":{"schema":{"id":"string","total":"number"}}}

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","sample_message":{"id":"a","total":7}}
    And a client updates the topic with {"sample_message":{"id":7,"buyer":"Ann"}}
    And a client updates the topic with {}
    Then every topic shown has the values:
      | name   | "{this_name}"                          |
      | schema | {"id":"number","buyer":"string"}  |

  @TPC-009 @must @spec @spec-4
  Scenario: A topic needs a name and a sample message
    Without a name nothing can be sent to it, and without a message nothing can be mapped.
    Cause: the body is stored before it is checked.
    Fix: answer {"status":"error"} when one of them is missing, or sample_message is no object.
    Good: POST /sources/3/topics {"name":"orders"} -> 400 {"status":"error","message":"…"}
    Bad: POST /sources/3/topics {"name":"orders"} -> 201 {"status":"created","data":{"schema":{}}}

    Given a source that streams
    When a client makes each call with its own token:
      | POST /sources/{stream}/topics | {"sample_message":{"id":"a"}} |
      | POST /sources/{stream}/topics | {"name":"{this_name}"} |
      | POST /sources/{stream}/topics | {"name":"{this_name}","sample_message":"id"} |
      | POST /sources/{stream}/topics | {"name":"{this_name}","sample_message":[{"id":"a"}]} |
    Then the status of each answer is one of "error"

  @TPC-010 @must @spec @spec-4 @spec-4.1.8
  Scenario: A change that cannot be changes nothing
    Half of a change is a topic that nobody asked for.
    Cause: fields are stored one by one.
    Fix: check the whole body first, and answer {"status":"error"}.
    Good: PATCH {"name":"sales","sample_message":7} -> 400 {"status":"error"}, and the name stays
    Bad: PATCH {"name":"sales","sample_message":7} -> 400 {"status":"error"}, and the name is "sales"

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","sample_message":{"id":"a"}}
    And a client updates the topic with {"name":"{this_name_new}","sample_message":7}
    Then the status of each answer is one of "error"
    When a client updates the topic with {}
    Then every topic shown has the values:
      | name   | "{this_name}"        |
      | schema | {"id":"string"} |

  @TPC-011 @must @published @spec-4
  Scenario: A topic that does not exist is answered with 404
    Clients take 404 for gone and make the thing again; anything else stops them.
    Cause: an unknown id makes a new topic, or ends in an error of the server.
    Fix: answer 404 for an unknown source and for an unknown topic.
    Good: PATCH /sources/3/topics/2000000011 -> 404 {"status":"not_found","message":"…"}
    Bad: PATCH /sources/3/topics/2000000011 -> 201 {"status":"created"}

    Given a source that streams
    When a client makes each call with its own token:
      | PATCH /sources/{stream}/topics/{nobody} | {"name":"{this_name}"} |
      | POST /sources/{nobody}/topics | {"name":"{this_name}","sample_message":{"id":"a"}} |
    Then each call is answered with 404

  @TPC-012 @must @spec @spec-2.12
  Scenario: The times of a topic tell when it was made and changed
    Clients read changed topics again, and know by the time which those are.
    Cause: both times are one, or both are set by every change.
    Fix: keep created_at, and set updated_at with every change.
    Good: "created_at":"2026-01-05T09:00:00Z","updated_at":"2026-01-05T09:00:00Z" and then "created_at":"2026-01-05T09:00:00Z","updated_at":"2026-01-05T09:30:00Z"
    Bad: "created_at":"2026-01-05T09:00:00Z" and then "created_at":"2026-01-05T09:30:00Z"

    Given a source that streams
    When a client creates a topic with {"name":"{this_name}","sample_message":{"id":"a"}}
    And a client updates the topic with {"description":"changed"}, a moment later
    Then "updated_at" of every topic shown is later than before
    And "created_at" of every topic shown is the same as before
