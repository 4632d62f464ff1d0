Feature: Record results
  Every record that was sent has a status of its own.

  @RES-001 @must @published @spec-4.2 @write @records-4 @each-object @evidence-results
  @needs-OBJ-004 @needs-FLD-002 @needs-FLD-004 @needs-FLD-006 @needs-FLD-010 @needs-OPS-002 @needs-SPD-001
  Scenario: A batch is answered by an array of record results
    The service looks for the array "record_results". Without it the whole batch fails.
    Cause: results are keyed by identifier.
    Fix: answer {"record_results":[…]}.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":{"a@x.io":true}}}

    Given an object
    When the service sends 2 new records with any operation
    Then every result of sync_batch has an array of record results

  @RES-002 @must @spec @spec-7.2.4 @write @records-20 @each-object @evidence-results
  @needs-RES-001 @needs-RES-004 @needs-RES-005
  Scenario: Every record that was sent has a result
    A record without a result counts as failed. The service sends it again in this run, in the
    next run and in every run after that.
    Cause: the handler skips records that raise an exception or do not qualify.
    Fix: answer {"identifier": …, "success": false, "error_message": …} for them.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object
    When the service sends 3 new records with each operation
    And the service sends the same records with each operation
    Then every record has a result
    And every record result agrees with the others of its record

  @RES-003 @should @policy @spec-7.2.4 @write @records-6 @each-object @evidence-results
  @needs-RES-001 @needs-RES-004 @needs-RES-002
  Scenario: Results name only records that were sent, each once
    A result that belongs to no record hints at another run's data; a repeated one hides which
    counts.
    Cause: results are collected over batches.
    Fix: answer one result for each record of this batch.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"},{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}

    Given an object
    When the service sends 3 new records with any operation
    Then every record result names a record that was sent, and each only once

  @RES-004 @must @spec @spec-7.2.4 @write @records-10 @each-object @evidence-results
  @needs-RES-001
  Scenario: Results carry the identifier exactly as it was sent
    Results are matched by the identifier. A changed one belongs to no record, which then counts
    as failed.
    Cause: identifiers are parsed, trimmed or folded before the answer.
    Fix: answer the identifier of the request, untouched.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"A@x.io "}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"A@x.io ","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"A@x.io "}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object
    When the service sends new records with these identifiers with any operation:
      | "{key} Mixed CASE" |
      | " {key} spaces " |
      | "{key}-e\\u0301" |
      | "{odd}" |
      | "{key} <b> & 'q'" |
      | {odd} |
    Then every record result has an identifier exactly as it was sent

  @RES-005 @must @spec @spec-7.2.4 @write @records-4 @each-object @evidence-results
  @needs-RES-001
  Scenario: The status of a record is a boolean
    Only true is a success. Another value counts as failed, and the record is sent for ever.
    Cause: the status of the destination is passed on.
    Fix: answer "success": true or false.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":"ok"}]}}

    Given an object
    When the service sends 2 new records with any operation
    Then every record result has a boolean "success"

  @RES-006 @should @spec @spec-7.2.4 @write @records-20 @each-object @evidence-refused
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005
  Scenario: A failure says why
    The message is all that the user sees of the failure in the sync history.
    Cause: the error object of the destination is passed on.
    Fix: answer "error_message" as a non-empty string.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false}]}}

    Given an object
    When the service sends 3 new records with each operation
    And the service sends the same records with each operation
    Then every record result that is a failure has a message

  @RES-007 @info @published @spec-7.2.4 @write @records-4 @each-object
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005
  Scenario: Messages on success are noted
    A message beside a success, or a null, is tolerated. The report lists them.
    Cause: the result type always has the member.
    Fix: nothing has to change.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true,"error_message":null}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true,"error_message":{}}]}}

    Given an object
    When the service sends 2 new records with any operation
    Then it is noted which successes carry a message

  @RES-008 @must @spec @spec-7.2.4 @write @records-14 @each-object @evidence-accepted @evidence-refused
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006 @needs-RES-009
  Scenario: A bad record does not mark its neighbours
    A good record that is marked as failed is sent for ever, though it is stored.
    Cause: the status of a batch statement is copied to its rows.
    Fix: keep a status for each record.
    Good: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":false,"error_message":"record not present"},{"identifier":"c@x.io","success":true}]}}
    Bad: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":false,"error_message":"record not present"},{"identifier":"c@x.io","success":false,"error_message":"record not present"}]}}

    Given an object with a known bad record
    And an object that can create records
    When the service sends 5 good records and 2 bad records with the creating operation
    Then no good record is marked as failed

  @RES-009 @must @spec @spec-4.2.2 @write @readback-decides @records-16 @each-object @evidence-refused
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006
  Scenario: A bad record is not acknowledged
    A record that is acknowledged is never sent again. If it was not stored it is lost.
    Cause: the error of the destination is ignored.
    Fix: mark the record as failed and pass the message on.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"b@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"b@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"b@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object with a known bad record
    And an object that can create records
    When the service sends 0 good records and 1 bad record with the creating operation
    And the service sends 5 good records and 2 bad records with the creating operation
    Then no bad record is acknowledged

  @RES-010 @should @published @spec-7.2.4 @write @records-14 @each-object @evidence-accepted @evidence-refused
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006
  Scenario: Each status stands at its own record
    Results may come in any order, but a status at the wrong identifier loses one record and
    repeats another.
    Cause: results are zipped with the wrong list.
    Fix: build the result where the record is written.
    Good: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":false,"error_message":"record not present"},{"identifier":"c@x.io","success":true}]}}
    Bad: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"},{"identifier":"b@x.io","success":true},{"identifier":"c@x.io","success":true}]}}

    Given an object with a known bad record
    And an object that can create records
    When the service sends 5 good records and 2 bad records with the creating operation
    Then every record result stands at its own record

  @RES-011 @should @policy @spec-7.2.4 @write @records-1 @each-object @evidence-responses
  @needs-RES-001
  Scenario: An empty batch has empty results
    A probe or an empty tail of a sync must not look like a failure.
    Cause: the first record is read without a check.
    Fix: answer {"record_results":[]}.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32603,"message":"index out of range"}}

    Given an object
    When the service sends no records with any operation
    Then every reply has a result
    And every result of sync_batch has an array of record results

  @RES-012 @must @spec @spec-4.2 @write @records-10 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-OPS-006
  Scenario: A batch of one record works
    The service splits a failed batch until one record is left. If that fails for being alone,
    nothing gets through.
    Cause: a bulk interface that needs two rows.
    Fix: handle a single record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32603,"message":"bulk needs two rows"}}

    Given an object
    When the service sends 1 record that it is for with every operation of a mirror
    Then every batch is processed

  @RES-013 @must @spec @spec-4.2 @write @records-14 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-DUP-001
  Scenario: A plan that maps only what it must works
    A sync of identifiers alone is legal, for example to fill a list. Where fields are required,
    the least plan maps those too.
    Cause: the statement has an empty SET clause, or a change is checked as if it were a new record.
    Fix: treat such a record as present without changes.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32603,"message":"syntax error near WHERE"}}

    Given an object
    When the service sends 2 records that each operation is for with each operation, mapping only what is required
    Then every plan that maps no more than it must is accepted

  @RES-014 @should @policy @spec-4.2 @write @readback-required @records-6 @each-object @evidence-kept
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-007 @needs-SEM-004 @needs-RES-013
  Scenario: Fields that are not mapped stay as they are
    A sync writes the fields that it maps. Others belong to somebody else.
    Cause: the whole row is replaced.
    Fix: write only the fields of the plan's schema.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1","name":"Ann"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1","name":null}}],"complete":true}

    Given an object that can create records
    When the service sends 2 new records with the creating operation
    And the service sends the same records with other values with the changing operation, mapping every second field
    Then everything else is unchanged by the last batch
    When the service sends the same records with the changing operation, mapping only what is required
    Then everything else is unchanged by the last batch

  @RES-015 @should @policy @spec-4.2.5 @write @records-4 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: The same identifier twice in a batch is survived
    Sources have duplicates. The batch must not fail as a whole for one.
    Cause: a bulk statement refuses to touch a row twice.
    Fix: handle the second one as a later record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"a@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32603,"message":"cannot affect row a second time"}}

    Given an object
    When the service sends 2 new records with any operation, each twice
    Then every batch is processed

  @RES-016 @should @policy @spec-4.2 @write @readback-decides @records-12 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-007 @needs-SEM-006 @needs-SEM-001 @needs-DAT-001 @needs-FLD-011 @needs-DAT-010 @needs-SEM-004 @needs-SEM-007 @needs-FLD-014
  Scenario: The order of members does not matter
    JSON objects have no order. Values that land by position end up in the wrong field, and
    results are told by a value that is no identifier.
    Cause: columns are filled, or the identifier is taken, by position.
    Fix: read each value by its name, and the identifier by the field that the plan marks.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"zip":"1","city":"Ulm","email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"city":"Ulm","zip":"1"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"zip":"1","city":"Ulm","email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"city":"1","zip":"Ulm"}}],"complete":true}

    Given an object that can create records
    When the service sends 4 new records with the creating operation
    And the service sends the same records with other values with every changing operation, with members in different orders
    Then every record has a result
    And every record is acknowledged
    And every acknowledged record is stored exactly
    When the service sends 3 new records with the creating operation, with members in different orders
    Then every record has a result
    And every acknowledged record is stored exactly

  @RES-017 @should @policy @spec-7.2.4 @write @records-4 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005
  Scenario: Identifiers keep their JSON type
    A text for a number matches only in a service that is lenient.
    Cause: identifiers are kept as text.
    Fix: answer the identifier of the request, untouched.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":42}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":42,"success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"order_id":42}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"42","success":true}]}}

    Given an object with an integer identifier
    When the service sends 2 new records with any operation, by the integer identifier
    Then every record result has an identifier of the type that was sent

  @RES-018 @should @spec @spec-7.2.4 @write @records-14 @each-object @evidence-refused
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006
  Scenario: One bad record does not fail the batch
    The service would have to split the batch again and again to find the bad one.
    Cause: one transaction without handling of the single row.
    Fix: catch the error of each record.
    Good: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":false,"error_message":"record not present"},{"identifier":"c@x.io","success":true}]}}
    Bad: (b is bad) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io"},{"email":"c@x.io","zip":"3"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"null value in column last_name"}}

    Given an object with a known bad record
    And an object that can create records
    When the service sends 5 good records and 2 bad records with the creating operation
    Then every batch is processed

  @RES-019 @should @policy @spec-7.2.4 @write @records-5 @each-object @evidence-responses
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005
  Scenario: A record without identifier is not acknowledged
    Such a record cannot be matched. Acknowledged it creates copies or changes anything.
    Cause: null is treated as a value.
    Fix: mark the record as failed.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":null}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":null,"success":false,"error_message":"no identifier"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":null}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":null,"success":true}]}}

    Given an object
    When a good new record is accepted as the control
    And the service sends 2 new records with each operation, without their identifier
    Then no record is acknowledged

  @RES-020 @must @spec @spec-4.2 @write @records-60 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-007
  Scenario: The same values fare the same in every operation
    A value that one operation accepts and another one refuses depends on the sync, not on the
    data: the record is repeated for ever in one sync and stored in the other.
    Cause: the operations are different code, with a validation of their own each.
    Fix: validate a value in one place.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"insert","…":"…"},"records":[{"email":"a@x.io","city":"Köln"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, and the same with upsert
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","city":"Köln"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, and with insert {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"invalid character"}]}}

    Given an object with two operations
    When the service sends the same values with every operation:
      | string | "conf {u}" | plain text |
      | string | "caf\\u00e9 {u}" | text outside ASCII |
      | string | "say 'so' & <b>{u}</b>" | text with quotes and markup |
      | integer | -{d} | a negative number |
      | any | null | null |
    Then the same values fare the same in every operation
