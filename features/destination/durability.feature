Feature: Persistence and repeats
  What was acknowledged is stored for good, and a repeat changes nothing.

  @DUR-001 @must @spec @spec-4.2.2 @write @readback-decides @records-194 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: Every acknowledged record is there at once
    The acknowledgement is final: the service may never send the record again. What is not
    stored at that moment can be lost.
    Cause: the write is queued or not awaited, or some rows fail without notice.
    Fix: acknowledge after the commit.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}},{"identifier":"b@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    When the service sends 97 new records with the creating operation, mapping one field beyond what is required
    Then every acknowledged record is in the destination

  @DUR-002 @must @spec @spec-4.2.2 @write @records-100 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-RES-012 @needs-SEM-001 @needs-SEM-006
  Scenario: A write is visible to the next call
    Two batches of one sync follow each other at once. The second must see what the first wrote.
    Cause: the write is not awaited.
    Fix: await the write before the reply.
    Good: (a was acknowledged) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (a was acknowledged) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}

    Given an object that can create records
    And an object with a witness operation
    When the service sends 50 new records with the creating operation, one by one in parallel, each followed by a witness
    Then every witness sees its record

  @DUR-003 @must @spec @spec-4.2.2 @write @readback-required @hook-restart @alone @records-9 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: Acknowledged records survive a restart
    A restart in the night must not lose what was synced in the evening.
    Cause: records are kept in memory, or the start reads back less than was written: a buffer that was not flushed, a part of a log.
    Fix: write to durable storage before the acknowledgement.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then (after a restart) read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then (after a restart) read-back {"records":[],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "plain" |
      | string | "two\\r\\nlines" |
      | string | "two\\u2028lines\\u0085or three" |
      | string | "tab\\tand, \\"quotes\\"; caf\\u00e9" |
    And the service sends 5 new records with the creating operation
    And the hook "restart" is called
    Then every acknowledged record is in the destination

  @DUR-004 @must @spec @spec-4.2.5 @spec-7.2.5 @write @readback-required @records-40 @each-object @evidence-stored
  @needs-DUR-001 @needs-DUP-001 @needs-DUP-002 @needs-SEM-008 @needs-DUR-005 @needs-FLD-011 @needs-DAT-010
  Scenario: A batch that was cut off can be sent again
    After a broken connection the service cannot know what was written, and sends the batch
    again.
    Cause: the work stops when the client is gone, and the repeat is taken for done.
    Fix: make a repeat of a batch end in the same state as one delivery.
    Good: (cut, sent again) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}},{"identifier":"b@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (cut, sent again) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    When the service sends 20 new records with the creating operation, cutting the reply
    And the service sends the same records with the creating operation
    Then every acknowledged record is stored exactly
    And every acknowledged record exists once

  @DUR-005 @must @spec @spec-4.2.2 @write @readback-required @records-6 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: Stored values are the values that were sent
    A value that was changed on the way is acknowledged and never sent again.
    Cause: a column is shorter than the value and cuts it.
    Fix: store the value whole, or fail the record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"(300 characters)"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"(300 characters)"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"(300 characters)"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"(the first 255)"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "plain" |
      | string | "{300}" |
      | integer | 4242 |
    Then every acknowledged record is stored exactly

  @DUR-006 @must @spec @spec-4.2.2 @write @readback-required @last @records-14 @each-object @evidence-kept
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: What was acknowledged stays as it was
    Before the clean-up every record of the run that was acknowledged is read back. One that is
    gone, or that a batch changed which did not name it, is wrong for ever: the service sends it
    again only when its row changes.
    Cause: a value that cannot be stored is dropped without a word, or a later batch reaches records that it does not name.
    Fix: store the record or fail it, and change only what a batch names.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then other batches, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then other batches, then read-back {"records":[],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "a\\u0000b" |
      | string | "a\\ud800b" |
      | string | "plain" |
      | float | 1e400 |
    And the service sends 2 new records with the creating operation
    And the service sends the same records with other values with every changing operation
    And the service sends 2 new records with the creating operation
    Then every acknowledged record of the run is as it was acknowledged

  @DUR-007 @must @spec @spec-4.2.2 @write @readback-required @last @records-34 @each-object @evidence-absent
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-RES-008 @needs-RES-009 @needs-SEM-005
  Scenario: What was refused does not appear later
    The service counts a failed record as failed, and shows it to the user. One that is written
    all the same, with the next batch, is a record that no sync knows of.
    Cause: a batch is kept in a list or a transaction that is not rolled back, and the next batch writes it; or values are written one by one, before the last one is checked.
    Fix: drop what was refused, and end the transaction of each call.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false}]}}, then other batches, then read-back {"records":[],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false}]}}, then other batches, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    When the service sends 3 good records and 1 bad record with the creating operation, if one is known
    And the service sends 2 new records with the creating operation
    Then no refused record of the run is there
    When the service changes 3 good records and 2 bad records with operation "upsert" if there is one, if one is known
    Then every skipped or refused record is unchanged by the last batch
    When the service changes 3 good records and 2 bad records with operation "update" if there is one, if one is known
    Then every skipped or refused record is unchanged by the last batch

  @DUR-008 @must @spec @spec-4.2 @write @readback-required @last @records-6 @each-object @evidence-deleted
  @needs-SEM-009
  Scenario: What was deleted does not come back
    A mirror that shows a removed record again shows data that must be gone.
    Cause: a delete sets a mark that a later write takes away, or a cache is written back.
    Fix: remove the record; an update of it is skipped as of any other that is absent.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then an update of a@x.io, then read-back {"records":[],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"delete","…":"…"},"records":[{"email":"a@x.io"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then an update of a@x.io, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert"
    And the service sends the same records with operation "delete"
    And the service sends the same records with other values with operation "update" if there is one
    Then no deleted record of the run is there

  @DUP-001 @must @spec @spec-4.2.5 @write @records-16 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-OPS-007
  Scenario: The same batch twice has full results both times
    The same record may be sent more than once. An error the second time makes a sync that never
    ends.
    Cause: a unique violation is raised to the batch, or rows that are found and not changed count as absent.
    Fix: treat a record that is there as done or skipped.
    Good: (the second time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}
    Bad: (the second time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"unique violation"}}

    Given an object
    When the service sends 2 records that each operation is for with each operation
    And the service sends the same records with each operation
    Then every batch is processed
    And every repeated change has the same outcome as before

  @DUP-002 @must @spec @spec-4.2.5 @write @readback-required @records-22 @each-object @evidence-stored
  @needs-DUP-001 @needs-SEM-006 @needs-SEM-001 @needs-SEM-003
  Scenario: Repeated delivery leaves one copy
    Retries deliver a record again. Each copy is then a customer with two mails.
    Cause: records are appended.
    Fix: match by the identifier.
    Good: (the second time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (the second time) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":2,"fields":{"zip":"1"}}],"complete":true}

    Given an object that can create records
    When the service sends 2 new records with the creating operation
    And the service sends the same records with the creating operation 9 times
    Then every acknowledged record exists once

  @DUP-003 @should @spec @spec-7.2.5 @write @records-30 @each-object @evidence-results
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-DUP-001 @needs-RES-012 @needs-OPS-007
  Scenario: A record alone has the status that it had in its batch
    The service splits a failed batch and sends records alone. Another status makes the outcome
    depend on the split.
    Cause: bulk and single writes are different code.
    Fix: use one way of writing.
    Good: (a succeeded in its batch) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (a succeeded in its batch) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}

    Given an object
    When the service sends 2 records that each operation is for with each operation
    And the service sends the same records with each operation
    And the service sends the same records with each operation, one by one
    Then every record has the same outcome as before

  @DUP-004 @info @policy @spec-4.2.5 @write @readback-required @records-6 @each-object
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: The value after an older batch came late is noted
    After a lost reply an older batch can arrive after a newer one. The report says which value
    stays.
    Cause: the protocol has no version of a record.
    Fix: nothing has to change.
    Good: (zip 1, zip 2, zip 1 again) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (zip 1, zip 2, zip 1 again) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}

    Given an object that can create records
    When the service sends 2 new records with the creating operation
    And the service sends the same records with other values with the creating operation
    And the service sends the first 2 records with the creating operation
    Then it is noted which values are stored
