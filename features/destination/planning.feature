@needs-RPC-006 @needs-RPC-007 @needs-AUTH-001 @needs-CON-005
Feature: Planning
  Objects, fields and operations are what a mapping is built on.

  @OBJ-001 @must @published @spec-4.2 @evidence-answers
  Scenario: Objects are a list with names and labels
    The user chooses the destination object from this list. An entry without a name or label
    cannot be chosen.
    Cause: the list is returned bare, or a label is optional.
    Fix: answer {"objects":[{"object_api_name":…,"label":…}]} with non-empty strings.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact","label":"Contact"}]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact"}]}}

    When the service calls "list_objects"
    Then every listed object has a name and a label

  @OBJ-002 @must @published @spec-4.2 @evidence-answers
  @needs-OBJ-001
  Scenario: At least one object is listed
    Without an object no sync can be created.
    Cause: the credentials of the endpoint see nothing, or a filter is too narrow.
    Fix: list what can be written to; a fixed list is fine.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact","label":"Contact"}]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    When the service calls "list_objects"
    Then the list of objects is not empty

  @OBJ-003 @must @published @spec-4.2 @evidence-answers
  @needs-OBJ-002
  Scenario: Object names are unique
    The name is the permanent key of an object. With two of them the service writes to either.
    Cause: two schemas are listed without their prefix.
    Fix: make the name unique, for example schema.table.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"a","label":"A"},{"object_api_name":"b","label":"B"}]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"a","label":"A"},{"object_api_name":"a","label":"A 2"}]}}

    When the service calls "list_objects"
    Then every listed object has a unique name

  @OBJ-004 @must @published @spec @spec-4.2.1 @evidence-answers
  @needs-OBJ-002
  Scenario: Objects keep their names
    A sync stores the name. When the next call names the object differently, the sync has lost
    its destination.
    Cause: names are generated, or depend on the process that answers.
    Fix: use a name that never changes.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact","label":"Contact"}]}} (each time)
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact_8f3","label":"Contact"}]}} (another suffix each time)

    When the service calls "list_objects" 3 times
    And the service calls "list_objects" in each of these ways:
      | on a fresh connection |
    Then the objects stay the same

  @OBJ-005 @should @published @spec-4.2 @write @readback-required @records-1 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001 @needs-FLD-011 @needs-DAT-010
  Scenario: A field created on write is stored and then listed
    The service maps new source columns to such fields. When they are dropped, data is lost
    without a word.
    Cause: unknown fields are filtered out before the write.
    Fix: create the field in the destination, or do not announce "on_write".
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zz_new":"x"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zz_new":"x"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zz_new":"x"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{}}],"complete":true}

    Given an object with fields created on write
    And an object that can create records
    When the service sends 1 new record with the creating operation, mapping a new field
    And the service calls "list_fields" for every object
    Then every acknowledged record is stored exactly
    And the fields show the new field

  @FLD-001 @must @published @spec-4.2 @evidence-answers
  @needs-OBJ-003 @needs-OBJ-004
  Scenario: Every field has its eight properties
    The service decides from them what can be mapped. A missing or wrong property makes the
    field unusable.
    Cause: the property is optional in the code, or a boolean is printed as text.
    Fix: answer all eight properties of each field with their JSON types.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"E-mail","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"E-mail","identifier":"true","type":"string"}]}}

    When the service calls "list_fields" for every object
    Then every listed field has its eight properties

  @FLD-002 @must @published @spec-4.2 @evidence-answers
  @needs-FLD-001
  Scenario: Field names are unique and not empty
    A record is a map by field name. Of two equal names one value is lost.
    Cause: names are cut or folded to one case, or two lists of fields, such as standard and custom ones, are merged.
    Fix: list each field once.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false},{"field_api_name":"zip","label":"Zip","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false},{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    Then every listed field has a unique name

  @FLD-003 @must @published @spec-4.2 @evidence-answers
  @needs-FLD-001
  Scenario: Every field has one of the seven types
    The service converts source values by the type. It has no conversion for another one.
    Cause: the column type of the database is passed on.
    Fix: map to boolean, decimal, float, integer, date, date_time or string.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"seen_at","label":"Seen_at","identifier":false,"required":false,"createable":true,"updateable":true,"type":"date_time","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"seen_at","label":"Seen_at","identifier":false,"required":false,"createable":true,"updateable":true,"type":"timestamp","array":false}]}}

    When the service calls "list_fields" for every object
    Then every listed field has a known type

  @FLD-004 @must @spec @spec-4.2 @evidence-answers
  @needs-FLD-001
  Scenario: Every object has a field that may be an identifier
    Each sync matches records by one identifier. Without one the object cannot be a destination.
    Cause: the property is never set.
    Fix: mark the unique key with "identifier": true.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    Then every listed object has an identifier field

  @FLD-005 @should @spec @spec-4.2 @evidence-answers
  @needs-FLD-001 @needs-FLD-006
  Scenario: Identifiers are required
    The identifier is supplied for every record, and the service asks for its mapping only when
    it is required.
    Cause: several candidate identifiers are listed and none is marked.
    Fix: set "required": true on the identifier.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":false,"createable":true,"updateable":true,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    Then every identifier field is required

  @FLD-006 @must @published @spec-4.2 @evidence-answers
  @needs-FLD-001 @needs-FLD-003
  Scenario: Identifiers are strings or integers and no arrays
    Records are matched by equality, which other types do not have reliably.
    Cause: a date or a number with fraction is declared as key.
    Fix: declare only string and integer fields as identifiers.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"born","label":"Born","identifier":true,"required":true,"createable":true,"updateable":true,"type":"date","array":false}]}}

    When the service calls "list_fields" for every object
    Then every identifier field is a string or an integer and no array

  @FLD-007 @should @policy @spec-4.2 @evidence-answers
  @needs-FLD-001 @needs-OPS-001
  Scenario: What a new record needs can be written when it is created
    A required field that cannot be written on create makes every insert fail.
    Cause: createable is taken from a permission that is not the one of the insert.
    Fix: set "createable": true on identifiers and required fields.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":false,"updateable":true,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    And the service calls "supported_operations" for every object
    Then every listed field that a new record needs is createable

  @FLD-008 @should @published @spec-4.2 @evidence-answers
  @needs-FLD-001
  Scenario: No field is dead
    A field that can be written neither on create nor on update only confuses the person who
    maps.
    Cause: read-only columns are listed.
    Fix: leave such fields out.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"zip","label":"Zip","identifier":false,"required":false,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"zip","label":"Zip","identifier":false,"required":false,"createable":false,"updateable":false,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    Then every listed field is writable

  @FLD-009 @should @jsonrpc @spec-4.2 @evidence-errors
  @needs-OBJ-004
  Scenario: list_fields of an unknown object is an error
    An empty list or the fields of another object hide that an object was renamed or deleted.
    Cause: the lookup falls back to a default.
    Fix: answer an error that names the object.
    Good: {"object":{"object_api_name":"nope"}} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"no object nope"}}
    Bad: {"object":{"object_api_name":"nope"}} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[]}}

    When the service calls "list_fields" for an object that does not exist
    Then no reply has a result

  @FLD-010 @must @spec @spec-4.2 @write-optional @records-2 @evidence-answers
  @needs-FLD-001
  Scenario: Every listed object has its fields, whatever it holds
    An empty object must be mappable too, and neither another call nor writing into existing
    fields must change the schema.
    Cause: the schema is derived from the first row, or from what earlier calls have left: a shared list, one of several processes.
    Fix: read the schema from the catalogue and not from the data, on each call.
    Good: (empty object) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: (empty object) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[]}}

    When the service calls "list_fields" 4 times
    And the service writes 2 records into existing fields if it may
    And the service calls "list_fields" for every object
    Then every listed object has the same fields each time

  @FLD-015 @should @policy @spec-4.2 @evidence-answers
  @needs-FLD-010
  Scenario: An object is found by its name, whatever its label
    A label is for people and may change at any time. The service keeps the one that it was told
    when the sync was set up.
    Cause: the lookup compares the label, or the label first.
    Fix: look up by object_api_name alone.
    Good: (the label of contact was Person) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Person"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: (the label of contact was Person) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Person"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"no object Person"}}

    When the service calls "list_fields" for every object
    And the service calls "list_fields" for every object under another label
    Then every listed object has the same fields each time

  @OPS-001 @must @spec @spec-4.2 @evidence-answers
  @needs-OBJ-003 @needs-OBJ-004
  Scenario: Supported operations are known words
    The user can choose only what the service knows. Another word is never offered.
    Cause: the word of another product, or an internal name, is passed on.
    Fix: answer an array of insert, update, upsert and mirror.
    Good: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert","update"]}}
    Bad: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["append"]}}

    When the service calls "supported_operations" for every object
    Then the supported operations are known words

  @OPS-002 @must @spec @spec-4.2 @evidence-answers
  @needs-OPS-001
  Scenario: At least one operation is supported, each listed once
    An object without operations cannot be a destination.
    Cause: operations are collected from roles.
    Fix: list each operation that works, once.
    Good: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}
    Bad: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":[]}}

    When the service calls "supported_operations" for every object
    Then the supported operations are not empty and unique

  @OPS-003 @should @jsonrpc @spec-4.2 @evidence-errors
  @needs-OBJ-004
  Scenario: supported_operations of an unknown object is an error
    A default list hides that an object was renamed or deleted.
    Cause: the list is a constant.
    Fix: look the object up first.
    Good: {"object":{"object_api_name":"nope"}} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"no object nope"}}
    Bad: {"object":{"object_api_name":"nope"}} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}

    When the service calls "supported_operations" for an object that does not exist
    Then no reply has a result
