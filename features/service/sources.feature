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
