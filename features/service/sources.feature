Feature: Source types
  What can be connected to read from, and which fields a connection needs.

  @SRC-001 @must @spec @spec-2.10
  Scenario: A source type shows its fields with their types
    Clients choose a type by what it can do, and make a form of its fields.
    Cause: a type leaves out what does not apply to it.
    Fix: give every field of the table for every type.
    Good: {"documentation_slug":"sources/snowflake","label":"Snowflake","service_name":"snowflake","supported_sync_engines":["basic"],"creatable_via_api":true,"creatable_via_connect_link":false,"supports_warehouse_writeback":true,"configuration_fields":{"fields":[]}}
    Bad: {"label":"Snowflake","service_name":"snowflake","supported_sync_engines":"basic","configuration_fields":[]}

    When a client lists the source types
    Then every source type shown has the members:
      | documentation_slug           | string          |
      | label                        | string          |
      | service_name                 | string          |
      | supported_sync_engines       | array of string |
      | creatable_via_api            | boolean         |
      | creatable_via_connect_link   | boolean         |
      | supports_warehouse_writeback | boolean         |
      | configuration_fields.fields  | array           |

  @SRC-002 @must @spec @spec-2.10
  Scenario: A configuration field is described in full
    A form is made of the description; what is missing cannot be asked for.
    Cause: empty members are left out.
    Fix: give every member of the table for every field.
    Good: {"id":"account","rules":"required","label":"Account","type":"string","placholder":"xy12345","matches":"^[a-z0-9.-]+$","is_password_type_field":false,"possible_values":[],"read_more":"","hint":"","input_type":"text"}
    Bad: {"id":"account","label":"Account","is_password_type_field":null}

    When a client lists the source types
    Then every configuration field shown has the members:
      | id                     | string          |
      | label                  | string          |
      | type                   | string          |
      | matches                | string          |
      | is_password_type_field | boolean         |
      | possible_values        | array of string |
      | read_more              | string          |
      | hint                   | string          |
      | input_type             | string          |

  @SRC-003 @must @spec @spec-2.10 @differs-rules-as-list
  Scenario: The rules of a configuration field are one string
    Clients that decode a string stop at the whole list when there is anything else.
    Cause: the rules are kept as a list, and written as one.
    Fix: write them as a string, such as "required".
    Good: {"id":"account","rules":"required"}
    Bad: {"id":"account","rules":["required"]}

    When a client lists the source types
    Then every configuration field shown has the members:
      | rules | string |

  @SRC-004 @must @spec @spec-2.10
  Scenario: The placeholder of a configuration field is spelt placholder
    The name on the wire is misspelt, and clients read that name.
    Cause: the spelling was put right.
    Fix: write the member as placholder.
    Good: {"id":"account","placholder":"xy12345"}
    Bad: {"id":"account","placeholder":"xy12345"}

    When a client lists the source types
    Then every configuration field shown has the members:
      | placholder | string |

  @SRC-005 @must @spec @spec-2.10
  Scenario: What a configuration field must match is a regular expression
    A form that cannot read the pattern refuses every value, or breaks.
    Cause: the pattern is written with the signs of a programming language around it, or cut.
    Fix: write the regular expression alone; an empty text matches everything.
    Good: {"id":"port","matches":"^[0-9]+$"}
    Bad: {"id":"port","matches":"^([0-9]+$"}

    When a client lists the source types
    Then every configuration field shown has the members:
      | matches | regular expression |

  @SRC-006 @must @spec @spec-2.1 @spec-4
  Scenario: Source types are listed in the envelope of lists
    Clients read all lists with the same code.
    Cause: the list is static, and answered as it is.
    Fix: answer 200 {"status":"success","pagination":{…},"data":[…]}.
    Good: GET /source_types -> 200 {"status":"success","pagination":{"page":1},"data":[{"service_name":"snowflake"}]}
    Bad: GET /source_types -> 200 {"status":"ok","data":[{"service_name":"snowflake"}]}

    When a client lists the source types
    Then every answer has the HTTP status 200
    And every answer has the status word "success"

  @SRC-007 @should @policy @spec-2.10
  Scenario: Every type is listed once, and every source has one of them
    The service_name of a type is the type of a new source; it must mean one thing.
    Cause: types are listed by version, or some only for a part of the users.
    Fix: list each type that a source may have, once.
    Good: GET /source_types -> {"data":[{"service_name":"snowflake"}]}, GET /sources/3 -> {"data":{"type":"snowflake"}}
    Bad: GET /source_types -> {"data":[{"service_name":"postgres"}]}, GET /sources/3 -> {"data":{"type":"snowflake"}}

    When a client lists the source types
    And a client fetches the source of the run
    Then the type of every source shown is one of the source types
    And no two source types shown have the same "service_name"

  @SRC-008 @should @policy @spec-2.10
  Scenario: A required configuration field is required
    A source that lacks a field fails in the first run of every sync that reads it.
    Cause: the rules are shown and not held.
    Fix: answer 400 to a source without a field whose rules say required.
    Good: POST /sources {"connection":{"name":"Store","type":"snowflake","credentials":{"account":"xy12345"}}} -> 400 {"status":"error","message":"…"}
    Bad: POST /sources {"connection":{"name":"Store","type":"snowflake","credentials":{"account":"xy12345"}}} -> 201

    When a client calls, one after the other:
      | POST | /sources | {"connection":{"name":"{name}","type":"snowflake","credentials":{"account":"zz-conf","warehouse":"CONF","database":"CONF","user":"CONF"}}}     |
      | POST | /sources | {"connection":{"name":"{name}","type":"snowflake","credentials":{"warehouse":"CONF","database":"CONF","user":"CONF","password":"zz-conf"}}} |
    Then every answer has the HTTP status 400

  @SRC-009 @should @policy @spec-2.10
  Scenario: What a password field holds is never shown
    Whoever may read sources could open the warehouse.
    Cause: the credentials are shown as they were given.
    Fix: show what is no password only.
    Good: GET /sources/3 -> {"data":{"connection_details":{"account":"xy12345"}}}
    Bad: GET /sources/3 -> {"data":{"connection_details":{"account":"xy12345","password":"…"}}}

    When a client calls, one after the other:
      | POST | /sources        | {"connection":{"name":"{name}","type":"snowflake","credentials":{"account":"zz-conf","warehouse":"CONF","database":"CONF","user":"CONF","password":"{secret}"}}} |
      | GET  | /sources/{made} | |
      | GET  | /sources        | |
    Then no answer shows "{secret}"
