Feature: Declared fields and operations
  What planning declares is what a batch does.

  @FLD-011 @must @spec @spec-4.2 @write @readback-required @records-40 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001 @needs-DUR-005 @needs-DAT-005 @needs-DAT-007 @needs-DAT-008 @needs-DAT-009 @needs-DAT-004 @needs-DAT-011 @needs-DAT-001
  Scenario: Every declared field keeps its declared type
    The service converts to the declared type. A destination that stores another one gives back
    something else than was synced.
    Cause: the column has another type than the declaration, only the first field of a type is written, or the name of a field is not quoted in a statement.
    Fix: declare the type that is stored, write every declared field, and quote the names of columns.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","age":-42}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"age":-42}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","age":-42}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"age":"-42"}}],"complete":true}

    Given an object that can create records
    When the service sends 2 new records with the creating operation, mapping every field but arrays
    Then every declared field takes a value
    And every acknowledged record is stored exactly
    When the service sends new records with these values with the creating operation:
      | string | "plain" |
      | integer | -42 |
      | float | 42.5 |
      | decimal | "1234.1234" |
      | boolean | true |
      | date | "2021-03-29" |
      | date_time | "2021-03-29T16:32:23Z" |
    Then every acknowledged record is stored exactly

  @FLD-012 @must @spec @spec-4.2 @write @records-6 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: Each declared identifier works as the active identifier
    The user chooses among the declared identifiers. One that does not work breaks the sync on
    its first batch.
    Cause: only the first key is implemented.
    Fix: match by the field that the plan marks as active, or declare one identifier only.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":7}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":7,"success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":7}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"unknown identifier order_id"}}

    Given an object with two identifier fields
    When the service sends 2 new records with any operation, by each identifier
    Then every batch is processed

  @FLD-013 @should @policy @spec-4.2 @write @records-2 @each-object @evidence-responses
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: A field that is no identifier is refused as the active one
    Matching by a field that is not unique changes the wrong records.
    Cause: the flag of the plan is trusted.
    Fix: compare the active identifier with the declaration.
    Good: (first_name is the active identifier) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"first_name":"A"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"first_name is no identifier"}}
    Bad: (first_name is the active identifier) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"first_name":"A"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"A","success":true}]}}

    Given an object with a field that is no identifier
    When a good new record is accepted as the control
    And the service sends 1 new record with any operation, by a field that is no identifier
    Then no record is acknowledged

  @OPS-004 @must @spec @spec-4.2 @write @records-6 @each-object @evidence-results
  @needs-RES-001
  Scenario: Every advertised operation is processed
    The user may choose each advertised operation. One that is not implemented fails or, worse,
    answers nothing.
    Cause: the operation is listed but not handled.
    Fix: implement the operation or do not advertise it.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"},{"identifier":"b@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[]}}

    Given an object
    When the service sends 2 new records with each operation
    Then every batch is processed

  @OPS-005 @should @spec @spec-4.2 @write @readback-decides @records-2 @each-object @evidence-responses
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: An operation that is not advertised is refused
    An operation that is carried out as another one writes what nobody asked for.
    Cause: unknown operations fall through to upsert.
    Fix: refuse what supported_operations does not list.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"append","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"operation append is not supported"}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"append","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object
    When the service sends 1 new record with an operation that is not advertised
    Then no record is acknowledged

  @OPS-006 @must @spec @spec-4.2 @write @records-4 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005
  Scenario: Mirror means upsert and delete batches
    A mirror sync sends upsert and delete batches and never "mirror" itself. Refused deletes
    leave removed records behind.
    Cause: only "mirror" is handled, which is never sent.
    Fix: handle the operations upsert and delete.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"unknown operation delete"}}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert"
    And the service sends the same records with operation "delete"
    Then every batch is processed

  @OPS-007 @must @spec @spec-4.2 @write @records-16 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-OPS-006 @needs-DUR-002
  Scenario: Every advertised operation accepts the records that it is for
    An operation that refuses each record is one that no sync can use: insert and upsert of new
    records, upsert and update of records that are there, delete in a mirror.
    Cause: the branch of the operation is missing or tests the wrong condition, or every value is refused by a validation.
    Fix: accept the records, do not advertise the operation, or give values that the object takes under fixtures.
    Good: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"update is not possible"}]}}

    Given an object
    When the service sends 2 records that it is for with every operation of a mirror
    Then every operation accepts records that it is for

  @FLD-014 @must @spec @spec-4.2 @write @readback-required @records-160 @each-object @evidence-changed
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-007 @needs-SEM-004 @needs-FLD-011 @needs-DUR-005 @needs-DAT-004 @needs-DAT-005 @needs-DAT-007 @needs-DAT-008 @needs-DAT-009 @needs-DAT-010 @needs-DAT-011 @needs-DAT-001 @needs-DAT-015
  Scenario: Every declared field can be changed
    A field that is declared updateable and keeps its first value shows old data for ever.
    Cause: the statement that changes a record names other fields than the one that creates it, a value is written over a part of the old one, or a change is left out where old and new seem the same.
    Fix: write every field of the plan, or declare the field with "updateable": false.
    Good: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    And an object that accepts "update" or "upsert"
    When the service sends 8 new records with the creating operation, mapping every field
    And the service sends the same records with the opposite values with every changing operation
    Then every acknowledged record is stored exactly
    When the service sends new records with these values with the creating operation:
      | string | values that are nearly those of "trim" |
      | string | values that are nearly those of "case" |
      | string | values that are nearly those of "normalise" |
      | string | values that are nearly those of "truncate" |
      | string | values that are nearly those of "cast" |
      | integer | values that are nearly those of "clamp" |
      | integer | values that are nearly those of "round" |
      | decimal | values that are nearly those of "round" |
      | float | values that are nearly those of "round" |
      | date_time | values that are nearly those of "round moments" |
    Then every acknowledged record is stored exactly
    When the service sends the same records with nearly the same values with operation "update" if there is one
    Then every acknowledged record is stored exactly
    When the service sends the same records with nearly the same values with operation "upsert" if there is one
    Then every acknowledged record is stored exactly
