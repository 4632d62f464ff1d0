Feature: Operations of syncs
  What a sync sends for each operation and strategy, and what becomes of it in the destination.

  @OPER-001 @must @spec @spec-4.2
  Scenario: An upsert sync creates and modifies records
    Who sets a sync to upsert expects the destination to follow the source: new records and changed ones.
    Cause: only records that are new to the sync are sent, or the batches have another operation.
    Fix: send every new and every changed record with operation upsert.
    Good: a changed record is sent with {"sync_plan":{"operation":"upsert"},"records":[{"id":"b","name":"Bea"}]}
    Bad: a changed record is never sent again

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bea" |
      | "c" | "Cy"  |
    And the sync runs
    Then every batch has the operation "upsert"
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bea" |
      | "c" | "Cy"  |

  @OPER-002 @must @spec @spec-4.2 @clock
  Scenario: An insert sync only creates records
    The destination skips what is there already: it can do so only when the batch says insert.
    Cause: the batches of an insert sync are sent as upsert, and overwrite.
    Fix: send the batches of an insert sync with operation insert.
    Good: {"sync_plan":{"operation":"insert"},"records":[{"id":"a","name":"Ada"}]}
    Bad: {"sync_plan":{"operation":"upsert"},"records":[{"id":"a","name":"Ada"}]}

    Given the destination already holds
      | id  | name  |
      | "a" | "Abe" |
    And a sync with operation "insert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    Then every batch has the operation "insert"
    And the destination holds
      | id  | name  |
      | "a" | "Abe" |
      | "b" | "Bob" |

  @OPER-004 @must @spec @spec-4.2 @clock
  Scenario: An update sync only modifies records
    The destination skips what it does not have: it can do so only when the batch says update.
    Cause: the batches of an update sync are sent as upsert, and create records.
    Fix: send the batches of an update sync with operation update.
    Good: {"sync_plan":{"operation":"update"},"records":[{"id":"b","name":"Bob"}]}
    Bad: {"sync_plan":{"operation":"upsert"},"records":[{"id":"b","name":"Bob"}]}

    Given the destination already holds
      | id  | name  |
      | "a" | "Abe" |
    And a sync with operation "update" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    Then every batch has the operation "update"
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |

  @OPER-005 @must @spec @spec-7.2.4 @clock
  Scenario: A record that is skipped or refused does not end the run
    Each record has a verdict of its own. One that does not qualify says nothing of the others.
    Cause: the first failed result is taken as a failure of the run.
    Fix: take each result for its record alone, and complete the run.
    Good: {"identifier":"a","success":false,"error_message":"record already present"} and the run is completed
    Bad: the run has failed with "record already present"

    Given the destination already holds
      | id  | name  |
      | "a" | "Abe" |
    And a sync with operation "insert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    Then run 1 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Abe" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @OPER-006 @must @spec @spec-2.6 @spec-4.2
  Scenario: A mirror creates, modifies and deletes
    A mirror keeps the destination equal to the source; a record that is gone must go there, too.
    Cause: records that are gone from the source are not looked for.
    Fix: compare with what was sent before, and send a delete for each record that is gone.
    Good: run 2 sends upsert of b and c, and delete of a
    Bad: run 2 sends no delete

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "d" | "Dan" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "b" | "Bea" |
      | "c" | "Cy"  |
      | "d" | "Dan" |
    And the sync runs
    Then run 2 sends
      | upsert | b c |
      | delete | a   |
    And the destination holds
      | id  | name  |
      | "b" | "Bea" |
      | "c" | "Cy"  |
      | "d" | "Dan" |

  @OPER-008 @must @published @spec-4.2
  Scenario: A mirror deletes only what it has sent
    Whatever else is in the destination belongs to somebody else. The first run has sent nothing before, so it deletes nothing.
    Cause: the destination is emptied before the first run, or compared with the source by its own records.
    Fix: compare with what the sync itself has sent, and nothing else.
    Good: run 1 sends upserts only
    Bad: run 1 begins with {"sync_plan":{"operation":"delete"},"records":[{"id":"a"}]}

    Given the destination already holds
      | id  | name  |
      | "x" | "Xan" |
    And a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
    And the sync runs
    Then run 1 sends
      | upsert | a b |
    And run 2 sends
      | delete | b |
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "x" | "Xan" |

  @OPER-009 @must @spec @spec-2.6
  Scenario: sync_updates_and_nulls sets fields to null and deletes nothing
    The strategy is for destinations in which nothing may be lost: a value that is gone becomes null, and a record that is gone stays.
    Cause: the strategy is read as the one with deletes, or NULL is left out of records.
    Fix: send what is NULL in the source as null, and no delete.
    Good: run 2 sends {"id":"b","name":null} with operation upsert, and no delete
    Bad: run 2 sends {"id":"b"}, or a delete of a

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_nulls" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name |
      | "b" | null |
      | "c" | "Cy" |
    And the sync runs
    Then run 2 sends
      | upsert | b c |
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | null  |
      | "c" | "Cy"  |

  @OPER-010 @must @spec @spec-2.6
  Scenario: upload_and_swap sends the whole source in every run
    The table is replaced by the source as it is now: what was altered in the destination is set right by the next run.
    Cause: only the differences to the run before are sent.
    Fix: send every row in every run, and remove what is gone.
    Good: run 2 sends upsert of b and c, and delete of a
    Bad: run 2 sends upsert of c

    Given a sync with operation "mirror" and mirror_strategy "upload_and_swap" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination already holds
      | id  | name  |
      | "b" | "Ben" |
    And the sync runs
    Then the destination holds
      | id  | name  |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @OPER-011 @should @published @spec-2.6
  Scenario: A mirror without a strategy deletes what is gone
    Who sets nothing expects a mirror: sync_updates_and_deletes is the published default.
    Cause: the default is another strategy.
    Fix: take a mirror without mirror_strategy as sync_updates_and_deletes.
    Good: run 2 sends delete of a
    Bad: run 2 sends nothing

    Given a sync with operation "mirror" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "b" | "Bob" |
    And the sync runs
    Then run 2 sends
      | delete | a |

  @OPER-014 @must @published @spec-1
  Scenario: A later run sends only what is new or changed
    All syncs are incremental: the work of a run follows the changes, not the size of the source.
    Cause: every row is sent in every run.
    Fix: compare each row with what was sent of it, and send what differs.
    Good: run 2 sends b and c of three records
    Bad: run 2 sends a, b and c

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bea" |
      | "c" | "Cy"  |
    And the sync runs
    Then run 2 sends
      | upsert | b c |

  @OPER-015 @must @published @spec-2.7
  Scenario: A field that is no longer mapped keeps its values
    Taking a mapping away must not destroy what the destination has.
    Cause: a field without a mapping is sent as null.
    Fix: leave the field out of the plan and of the records.
    Good: run 2 sends {"id":"b","name":"Bea"}
    Bad: run 2 sends {"id":"b","name":"Bea","count":null}

    Given a sync with operation "upsert" of
      | id  | name  | count |
      | "a" | "Ada" | 1     |
      | "b" | "Bob" | 2     |
    When the sync runs
    And the sync no longer maps "count"
    And the source then holds
      | id  | name  | count |
      | "a" | "Ada" | 1     |
      | "b" | "Bea" | 3     |
    And the sync runs
    Then no record of run 2 has the field "count"
    And the destination holds
      | id  | name  | count |
      | "a" | "Ada" | 1     |
      | "b" | "Bea" | 2     |

  @OPER-016 @must @published @spec-2.7
  Scenario: A value that becomes NULL is sent as null
    Without it the destination keeps a value that the source no longer has.
    Cause: members that are NULL are left out of records.
    Fix: send null for what is NULL.
    Good: {"id":"b","name":null}
    Bad: {"id":"b"}

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | null  |
    And the sync runs
    Then the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | null  |

  @OPER-017 @must @spec @spec-4.2
  Scenario: A row without an identifier is not sent
    A destination cannot match it with anything. The identifier is required, and the rows beside it are not at fault.
    Cause: NULL is sent as the identifier, or the run ends at such a row.
    Fix: leave the row out, count it as invalid, and send the others.
    Good: of three rows, one without an id, two are sent
    Bad: {"records":[{"id":null,"name":"Nil"}]}

    Given a sync with operation "upsert" of
      | id   | name  |
      | "a"  | "Ada" |
      | null | "Nil" |
      | "b"  | "Bob" |
    When the sync runs
    Then run 1 sends
      | upsert | a b |
    And every record of every batch carries the one identifier of its plan

  @OPER-018 @must @spec @spec-4.2
  Scenario: No identifier is sent twice in one run
    The identifier is unique. Of two rows with the same one nobody knows which is right, and their batches may overtake each other.
    Cause: rows are sent as they stand in the source.
    Fix: look for identifiers that stand more than once, and leave them out as invalid.
    Good: of three rows, two with the id d, one record is sent, or two with different identifiers
    Bad: {"records":[{"id":"d","name":"Dan"},{"id":"d","name":"Dee"}]}

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "d" | "Dan" |
      | "d" | "Dee" |
    When the sync runs
    Then run 1 is completed
    And no record of run 1 has the identifier "d" twice

  @OPER-019 @should @policy @spec-4.2
  Scenario: A mirror does not delete what has become invalid
    A row that occurs twice by mistake is still there. Deleting its record turns a mistake in the source into a loss.
    Cause: an invalid row counts as no row.
    Fix: neither send nor delete a record whose identifier the source still has.
    Good: run 2 sends nothing for the identifier that now occurs twice
    Bad: {"sync_plan":{"operation":"delete"},"records":[{"id":"b"}]}

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Abe" |
      | "b" | "Bob" |
      | "b" | "Ben" |
    And the sync runs
    Then no batch of run 2 has the operation "delete"

  @OPER-021 @must @published @spec-4.2
  Scenario: What a mirror has deleted is sent again when it comes back
    A row may be gone for a day and return. The destination no longer has it.
    Cause: a record that was acknowledged once counts as sent for ever.
    Fix: forget what was sent of a record when its delete is acknowledged.
    Good: run 3 sends upsert of b
    Bad: run 3 sends nothing

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
    And the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    And the sync runs
    Then run 3 sends
      | upsert | b |
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |

  @OPER-022 @should @published @spec-4.2
  Scenario: append is not offered to custom destinations
    The protocol has no operation of that name, so a destination could not tell it from insert.
    Cause: append is sent as another operation.
    Fix: refuse a sync with operation append to a custom destination.
    Good: 400 {"status":"error","message":"…"}
    Bad: 200 {"status":"created","data":{"sync_id":7}}

    Given a destination
    When a client makes a sync of "id, name" with operation "append" into "thing"
    Then the sync is refused
    When a client makes a sync of "id, name" with operation "insert" into "thing"
    Then the sync is made
