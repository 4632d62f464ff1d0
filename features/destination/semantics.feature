Feature: Operation semantics
  insert, update, upsert and delete do what their names say and nothing else.

  @SEM-001 @must @spec @spec-4.2 @write @readback-decides @records-6 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: insert creates an absent record
    A record that is acknowledged and not created is lost: the service never sends it again.
    Cause: the insert runs in a transaction that is not committed, or is filtered out.
    Fix: write the record before the acknowledgement.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "insert"
    When the service sends 3 new records with operation "insert"
    Then every acknowledged record is in the destination

  @SEM-002 @must @spec @spec-4.2 @write @readback-required @records-6 @each-object @evidence-kept
  @needs-SEM-001 @needs-SEM-003
  Scenario: insert leaves an existing record alone
    The user chose insert to protect what is there.
    Cause: insert is carried out as upsert, or fills what is empty.
    Fix: skip records whose identifier exists.
    Good: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}

    Given an object that accepts "insert"
    When the service sends 3 new records with operation "insert", with null in every optional field
    And the service sends the same records with other values with operation "insert"
    Then every record is unchanged by the last batch

  @SEM-003 @must @spec @spec-1 @spec-4.2 @write @readback-decides @records-8 @each-object @evidence-stored @evidence-accepted
  @needs-SEM-001 @needs-DUR-002
  Scenario: insert skips an existing record and carries on
    A second copy breaks the identifier rule. An error for the batch holds back the records that
    are new.
    Cause: a plain INSERT statement, the failure of one record that takes back the others, a transaction that its first error aborts, a loop that ends with it, or results that are counted from the first record on.
    Fix: skip the existing record and write the others.
    Good: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"},{"identifier":"b@x.io","success":true}]}}
    Bad: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"duplicate key"}}

    Given an object that accepts "insert"
    When the service sends 2 new records with operation "insert"
    And the service sends the same records and 2 new ones with operation "insert"
    Then every batch is processed
    And every acknowledged record exists once
    And no new record is refused next to those that exist

  @SEM-004 @must @spec @spec-4.2 @write @readback-required @records-9 @each-object @evidence-changed
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-006 @needs-SEM-001
  Scenario: update changes an existing record
    An update that is acknowledged and not made leaves the old value for good.
    Cause: the statement matches no row and that is not checked.
    Fix: write the values before the acknowledgement.
    Good: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "update"
    And an object that can create records
    When the service sends 3 new records with the creating operation
    And the service sends the same records with other values with operation "update"
    Then every acknowledged record has its new values
    When the service sends the same records with the opposite values with operation "update", one by one
    Then every acknowledged record has its new values

  @SEM-005 @must @spec @spec-4.2 @write @readback-decides @records-3 @each-object @evidence-absent
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: update never creates a record
    The user chose update so that nothing new appears.
    Cause: update is carried out as upsert.
    Fix: skip records whose identifier is absent.
    Good: (a is absent) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}, then read-back {"records":[],"complete":true}
    Bad: (a is absent) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "update"
    When the service sends 3 new records with operation "update"
    Then no record exists

  @SEM-006 @must @spec @spec-4.2 @write @readback-decides @records-3 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: upsert creates an absent record
    A record that is acknowledged and not created is lost: the service never sends it again.
    Cause: upsert is carried out as update.
    Fix: create the record when its identifier is absent.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "upsert"
    When the service sends 3 new records with operation "upsert"
    Then every acknowledged record is in the destination

  @SEM-007 @must @spec @spec-4.2 @write @readback-required @records-9 @each-object @evidence-changed
  @needs-SEM-006 @needs-DUR-002
  Scenario: upsert changes an existing record
    A change that is acknowledged and not made is never sent again.
    Cause: a conflict is ignored.
    Fix: write the new values when the identifier exists.
    Good: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "upsert"
    When the service sends 3 new records with operation "upsert"
    And the service sends the same records with other values with operation "upsert"
    Then every acknowledged record has its new values
    When the service sends the same records with the opposite values with operation "upsert", one by one
    Then every acknowledged record has its new values

  @SEM-008 @must @spec @spec-4.2 @write @readback-required @records-9 @each-object @evidence-stored
  @needs-SEM-006 @needs-DUR-002
  Scenario: upsert leaves one copy
    The identifier is unique in both systems, whichever sync writes. With two copies later
    updates hit either.
    Cause: the match runs on another field or within one sync, or two writers race.
    Fix: put a unique key on the identifier.
    Good: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a exists with zip 1) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":2,"fields":{"zip":"2"}}],"complete":true}

    Given an object that accepts "upsert"
    When the service sends 3 new records with operation "upsert"
    And the service sends the same records with other values with operation "upsert"
    And the service sends the same records with other values with operation "upsert", in another sync
    Then every acknowledged record exists once

  @SEM-009 @must @spec @spec-4.2 @write @readback-decides @records-8 @each-object @evidence-deleted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-006 @needs-SEM-006 @needs-DUR-002
  Scenario: delete removes the records
    A mirror that keeps removed records shows data that must be gone.
    Cause: delete is acknowledged but not implemented, or finds its records by one of the identifiers only.
    Fix: remove the records before the acknowledgement.
    Good: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}
    Bad: (a exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert", by each identifier
    And the service sends the same records with operation "delete"
    Then no record exists

  @SEM-010 @must @spec @spec-4.2 @write @readback-required @records-13 @each-object @evidence-kept
  @needs-SEM-009
  Scenario: delete removes only the records it names
    A batch that removes more than it names destroys data that nobody will send again.
    Cause: the table is emptied first, or keys are matched by prefix, by pattern or without regard to case.
    Fix: delete by the exact identifier.
    Good: (a and b exist) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"b@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (a and b exist) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records and their look-alikes with operation "upsert"
    And the service sends the first 2 records with operation "delete"
    Then every other record is unchanged by the last batch

  @SEM-011 @should @spec @spec-4.2.5 @write @records-2 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-006
  Scenario: delete of an absent record is no batch error
    Batches are repeated. A record that is gone already is the wanted state.
    Cause: the number of deleted rows is checked.
    Fix: report success, or a failure of that record.
    Good: (a is absent) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (a is absent) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"record not found"}}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "delete"
    Then every batch is processed

  @SEM-012 @must @spec @spec-4.2 @write @readback-decides @alone @records-6 @each-object @evidence-stored
  @needs-SEM-009
  Scenario: upsert after delete creates the record again
    A row that comes back to the source must come back to the mirror.
    Cause: a soft delete hides the key for ever, or what it has hidden comes back with the key.
    Fix: let upsert create the record with nothing but what is sent.
    Good: (a was deleted) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a was deleted) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert"
    And the service sends the same records with operation "delete"
    And the service sends the same records with other values with operation "upsert", mapping fewer fields
    Then every acknowledged record is in the destination
    And no deleted value is there again, where a read-back shows it

  @SEM-013 @must @spec @spec-4.2 @write @readback-required @records-60 @each-object @evidence-stored
  @needs-FLD-012 @needs-OPS-007 @needs-SEM-006 @needs-SEM-007 @needs-SEM-008 @needs-DUR-002 @needs-SEM-004 @needs-FLD-014
  Scenario: Records are matched by the active identifier
    The plan says which field matches. Matching by another one changes or copies the wrong
    record.
    Cause: the first identifier is always used, either one matches, the conflict is looked for on another column, or an index keeps the old value of an identifier.
    Fix: read active_identifier from the plan, and match by that field alone.
    Good: (order_id is active and 7 exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":7,"order_number":"N2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":7,"success":true}]}}, then read-back {"records":[{"identifier":7,"count":1,"fields":{"order_number":"N2"}}],"complete":true}
    Bad: (order_id is active and 7 exists) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":7,"order_number":"N2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":7,"success":true}]}}, then two records with order_id 7

    Given an object with two identifier fields
    And an object that accepts "upsert"
    When the service sends 2 new records with operation "upsert", by the second identifier
    And the service sends the same records with other values with operation "upsert", by the second identifier
    Then every record is acknowledged
    And every acknowledged record exists once
    When the service sends records whose identifiers disagree with every changing operation
    Then only the record that the active identifier names is changed

  @SEM-014 @should @policy @spec-4.2 @write @readback-required @records-31 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001 @needs-FLD-011 @needs-DAT-010 @needs-DUR-005
  Scenario: Keys that are nearly equal are not merged
    Two source rows with such keys end up in one record, and one of them is lost without a word.
    Cause: a collation that folds case, accents or spaces, a column that is too short, one of numbers, or integers that become doubles.
    Fix: compare identifiers exactly, or fail the record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"A@x.io"},{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"A@x.io","success":true},{"identifier":"a@x.io","success":true}]}}, then two records
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"A@x.io"},{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"A@x.io","success":true},{"identifier":"a@x.io","success":true}]}}, then one record

    Given an object that can create records
    When the service sends new records with these identifiers with the creating operation:
      | "{key}-Case" |
      | "{key}-case" |
      | "{key}-sp ace" |
      | "{key}-sp  ace" |
      | "{key}-\\u00e9" |
      | "{key}-e\\u0301" |
      | "{key}-end" |
      | "{key}-end " |
      | "{key}-a_b" |
      | "{key}-axb" |
      | "{key}?a" |
      | "{key}?b" |
      | "{key}-%41" |
      | "{key}-A" |
      | "{key}#1/2" |
      | "{key}#1" |
      | "{key}+y" |
      | "{key} y" |
      | "{key}+a" |
      | "{key}+b" |
      | "{key}-{to 64}a" |
      | "{key}-{to 64}b" |
      | "{key}-{to 255}a" |
      | "{key}-{to 255}b" |
      | "{key} OR 1=1" |
      | "{key}' OR '1'='1" |
      | "{number}" |
      | "00{number}" |
      | {next} |
      | {next} |
      | {next} |
    Then every acknowledged record is stored exactly

  @SEM-015 @should @policy @spec-4.2 @write @records-18 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-005
  Scenario: Skipped records are reported in one way
    The service and its user must be able to tell a skip from a fault.
    Cause: different code paths for single and bulk writes.
    Fix: choose one convention and keep it for each operation.
    Good: (a is absent, each time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: (a is absent, the second time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object that accepts "insert" or "update"
    When the service sends 3 new records with each operation
    And the service sends the same records with each operation 2 times
    Then every record result reports a skip in one way

  @SEM-016 @must @spec @spec-4.2 @write @readback-required @records-2 @each-object @evidence-absent
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: A write to one object does not touch another
    Objects are separate. A record that shows up in a second one was synced there by nobody.
    Cause: all objects share a table without the object in its key.
    Fix: make the object part of the key.
    Good: (object contact) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then in object order read-back {"records":[],"complete":true}
    Bad: (object contact) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then in object order read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    When the service sends 2 new records with the creating operation
    Then no copy in another object exists

  @SEM-017 @must @spec @spec-4.2 @write @readback-required @records-13 @each-object @evidence-kept
  @needs-SEM-007 @needs-SEM-004 @needs-SEM-006 @needs-SEM-001
  Scenario: A change reaches only the records that it names
    A match that is not exact overwrites records of other people, and no run puts them right. A
    later sync run sends only what has changed: the records of earlier ones stay.
    Cause: keys are matched by prefix, pattern or without regard to case; or each run empties the table.
    Fix: match by the exact identifier, and remove only what a delete names.
    Good: (a@x.io and aa@x.io exist) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back of aa@x.io {"records":[{"identifier":"aa@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (a@x.io and aa@x.io exist) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back of aa@x.io {"records":[{"identifier":"aa@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}

    Given an object that can create records
    And an object that accepts "update" or "upsert"
    When the service sends 2 new records and their look-alikes with the creating operation
    And the service sends the first 2 records with other values with the changing operation, in another sync run
    Then every other record is unchanged by the last batch

  @SEM-018 @must @spec @spec-4.2 @write @readback-required @records-8 @each-object @evidence-kept
  @needs-SEM-009 @needs-SEM-016
  Scenario: A delete stays in its object
    Two objects may have the same key. A delete that reaches both destroys a record that its
    own sync still counts as there.
    Cause: the key is removed from every table.
    Fix: delete in the object of the plan only.
    Good: (a@x.io exists in contact and in member; object contact) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then in object member read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"level":"1"}}],"complete":true}
    Bad: (a@x.io exists in contact and in member; object contact) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then in object member read-back {"records":[],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert"
    And the same keys are created in another named object
    And the service sends the first 2 records with operation "delete"
    Then the records of the other object are kept

  @SEM-019 @must @spec @spec-4.2 @write @readback-decides @records-3 @each-object @evidence-stored
  @needs-SEM-001 @needs-SEM-009 @needs-SEM-012
  Scenario: insert creates a deleted record again
    A row that comes back to the source is absent from the destination, so insert is for it.
    Cause: a cache of known keys, or a table of seen ones, that a delete does not empty; or what it has hidden comes back.
    Fix: decide by what is stored, or forget the key with the record.
    Good: (a was inserted and deleted) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (a was inserted and deleted) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record already present"}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "insert"
    And an object that accepts "delete"
    When the service sends 3 new records with operation "insert"
    And the service sends the same records with operation "delete"
    And the service sends the same records with operation "insert", mapping fewer fields
    Then every deleted record is there again
    And no deleted value is there again, where a read-back shows it
