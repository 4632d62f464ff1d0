Feature: Retries and full syncs
  What is sent again: refused records, failed batches, incomplete syncs, and everything.

  @RTRY-001 @must @spec @spec-7.2.5 @clock
  Scenario: A record that is refused is sent again in the same run
    Most refusals pass by themselves in seconds. A record that is not tried again comes late by a whole schedule.
    Cause: a failed result is only counted.
    Fix: send refused records again, after a wait, before the run ends.
    Good: run 1 sends b, gets {"identifier":"b","success":false}, and sends b again
    Bad: run 1 sends b once and ends

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal once
    When the sync runs
    Then run 1 sends "b" more than once
    And run 1 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-002 @must @published @spec-7.2.5 @clock
  Scenario: A record that is refused through a whole run is sent again by the next one
    It was never stored, so it is owed, in every later run, until it is accepted.
    Cause: what was sent counts as done, whatever became of it.
    Fix: remember a record as sent only when its result has "success":true.
    Good: run 2 sends b
    Bad: run 2 sends nothing

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    And the destination is well again
    And the sync runs
    And the sync runs
    Then run 2 sends
      | upsert | b |
    And run 3 sends nothing
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-003 @must @published @spec-7.2.5 @clock
  Scenario: A record that was accepted is not sent again for the sake of another
    Success is final: the neighbours of a refused record were stored, and sending them again multiplies the work of every bad record.
    Cause: the whole batch is sent again, or the next run sends everything because the last one had failures.
    Fix: keep account of each record by itself.
    Good: run 1 sends a once and b three times; run 2 sends b
    Bad: run 1 sends a and b three times each

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    And the sync runs
    Then run 1 sends "a" once
    And run 1 sends "c" once
    And no record of run 2 has the identifier "a"

  @RTRY-004 @must @spec @spec-7.2.4 @clock
  Scenario: A record without a result counts as failed
    sync_batch must give a status for each record. Where it gives none, nobody knows that the record is stored.
    Cause: everything that is not refused counts as accepted.
    Fix: take a record as synced only when there is a result for it.
    Good: {"record_results":[{"identifier":"a","success":true},{"identifier":"c","success":true}]} and b is sent again
    Bad: b is not sent again

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with no result once
    When the sync runs
    And the sync runs
    Then the sync sends "b" more than once
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-007 @must @published @spec-7.2.4 @clock
  Scenario: Results are matched by identifier, in any order
    A destination writes in parallel, and answers in the order in which it ends.
    Cause: the first result is taken for the first record, and so on.
    Fix: look each result up by its identifier.
    Good: results in the order c, b, a, of which c failed: c is sent again
    Bad: results in the order c, b, a, of which c failed: a is sent again

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination gives results in reverse order
    And the destination answers record "c" with a refusal once
    When the sync runs
    And the sync runs
    Then the sync sends "c" more than once
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-008 @should @policy @spec-7.2.4 @clock
  Scenario: A record with both a success and a failure counts as failed
    What is sent twice does less harm than what is lost.
    Cause: the first result of a record wins, or a success does.
    Fix: take a record with results that contradict each other as failed.
    Good: {"identifier":"b","success":true},{"identifier":"b","success":false} and b is sent again
    Bad: b counts as sent

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with success and failure once
    When the sync runs
    And the sync runs
    Then the sync sends "b" more than once
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-011 @must @spec @spec-7.2.5 @clock
  Scenario: A batch that fails as a whole is sent again in the same run
    A destination may fail any call on an unexpected error: the service applies its own retries.
    Cause: the records of the batch wait for the next run.
    Fix: send the batch again, after a wait.
    Good: HTTP 500 for the first batch, and a second one with the same records
    Bad: HTTP 500 for the first batch, and the run ends

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers the first "sync_batch" with HTTP 500
    When the sync runs
    Then run 1 is completed
    And run 1 sends "b" more than once
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-012 @must @published @spec-7.2.5 @clock
  Scenario: A record that fails its whole batch does not keep its neighbours away
    One bad record can make a destination fail every batch that it comes in. The others must arrive without it.
    Cause: a batch that fails is sent again as it is, and no further.
    Fix: split a batch that keeps failing, until the bad record is alone.
    Good: the batch of a to h fails; in the same run all but e arrive
    Bad: the batch of a to h fails; none of them arrives

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
      | "d" | "Dan" |
      | "e" | "Eve" |
      | "f" | "Fay" |
      | "g" | "Gus" |
      | "h" | "Hal" |
    And the destination answers every "sync_batch" with record "e" with an error object
    When the sync runs
    Then run 1 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
      | "d" | "Dan" |
      | "f" | "Fay" |
      | "g" | "Gus" |
      | "h" | "Hal" |

  @RTRY-014 @must @spec @spec-4.2 @spec-7.2.5 @clock
  Scenario: A batch whose answer was lost is sent again
    Nobody knows what became of it. A record is synced only when the destination has said so; that it may come twice is known to every destination.
    Cause: a connection that ends is taken as an end of the call.
    Fix: send the batch again.
    Good: the connection ends without a reply, and the batch is sent again
    Bad: the connection ends without a reply, and the records count as sent

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers the first "sync_batch" with no reply, but stores it
    When the sync runs
    Then run 1 sends "a" more than once
    And run 1 sends "c" more than once
    And run 1 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-015 @must @spec @spec-7.2.5 @clock
  Scenario: A sync that was incomplete runs again by itself
    A destination may be down for an hour, and nobody should have to trigger its syncs. The check waits for two hours of the service's clock, or for 15 minutes for real.
    Cause: a run that has failed is the end of it.
    Fix: make another run some time after one that nothing came of.
    Good: run 1 fails; run 2 follows by itself, and sends everything
    Bad: run 1 fails, and nothing follows

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers every "sync_batch" with HTTP 500
    When the sync runs
    And the destination is well again
    And time passes until another run of the sync has ended
    Then run 1 is failed
    And run 2 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-016 @should @published @spec-7.2.5 @clock
  Scenario: The waits between tries grow
    A destination in trouble needs more time with every try, not the same load again and again.
    Cause: tries follow one another at once, or at a fixed pace.
    Fix: wait longer before each try, for example twice as long.
    Good: tries after 1, 2 and 4 seconds
    Bad: tries after 1, 1 and 1 second

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
    And the destination answers record "a" with a refusal
    And the destination notes the time of every call
    When the sync runs
    Then the waits between the batches of run 1 grow

  @RTRY-017 @must @published @spec-7.2.5
  Scenario: force_full_sync in the query sends every record again
    It is the way to set a destination right that has lost records.
    Cause: the parameter is not read.
    Fix: with POST /syncs/{id}/trigger?force_full_sync=true send every row, and say so in full_sync.
    Good: run 2 sends a, b and c, and has "full_sync":true
    Bad: run 2 sends nothing

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the sync runs with force_full_sync in the query
    Then run 2 sends
      | upsert | a b c |
    And run 2 is a full sync with its reason

  @RTRY-019 @should @spec @spec-7.2.5
  Scenario: Another URL of the destination brings a full sync
    What is behind another URL may know nothing of what was sent. It is the plainest condition that can cause a loss.
    Cause: what was acknowledged is kept by connection, whatever its URL.
    Fix: send everything again, and say why in sync_trigger_reason.
    Good: run 2 sends a, b and c, and has "full_sync":true
    Bad: run 2 sends nothing

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the URL of the destination changes
    And the sync runs
    Then run 2 sends
      | upsert | a b c |
    And run 2 is a full sync with its reason

  @RTRY-021 @must @published @spec-7.2.5
  Scenario: A new mapping brings a full sync
    The destination has the column for no record: it has to be filled for those that have not changed, too.
    Cause: only rows that have changed since are sent with the new field.
    Fix: send everything again, and say why in sync_trigger_reason.
    Good: run 2 sends {"id":"a","name":"Ada","count":1} and all others, and has "full_sync":true
    Bad: run 2 sends nothing

    Given a sync with operation "upsert" of
      | id  | name  | count |
      | "a" | "Ada" | 1     |
      | "b" | "Bob" | 2     |
    And the sync no longer maps "count"
    When the sync runs
    And the sync also maps "count"
    And the sync runs
    Then run 2 sends
      | upsert | a b |
    And run 2 is a full sync with its reason
    And the destination holds
      | id  | name  | count |
      | "a" | "Ada" | 1     |
      | "b" | "Bob" | 2     |

  @RTRY-022 @should @published @spec-2.9
  Scenario: A run that sends differences is no full sync
    full_sync tells who looks at a run why so much, or so little, was sent.
    Cause: full_sync is true in every run.
    Fix: set full_sync only where every row counted as changed.
    Good: run 2 sends b, and has "full_sync":false
    Bad: run 2 sends b, and has "full_sync":true

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bea" |
      | "c" | "Cy"  |
    And the sync runs
    Then run 2 is no full sync
    And run 2 sends
      | upsert | b |

  @RTRY-023 @must @spec @spec-7.2.4 @clock
  Scenario: The message of a refused record is shown in the history of its run
    It is the only place where somebody learns what is wrong with the record.
    Cause: error_message of a result is dropped.
    Fix: keep it with the record, and show it in GET /sync_runs/{id}/records.
    Good: {"identifier":"b","status":"rejected","status_message":"name is too long"}
    Bad: {"identifier":"b","status":"rejected","status_message":null}

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then the history of run 1 shows record "b" as rejected with its message
    And the history of run 1 shows record "a" as succeeded

  @RTRY-024 @should @published @spec-7.2.4 @clock
  Scenario: The history of a run can be asked for one status
    A run may have a million records. Who looks for the three that were refused asks for them.
    Cause: the parameter status is not read.
    Fix: give only the records of the status.
    Good: GET /sync_runs/7/records?status=rejected -> {"status":"success","data":[{"identifier":"b","status":"rejected"}]}
    Bad: GET /sync_runs/7/records?status=rejected gives all records

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then the history of run 1 with status "rejected" is
      | b |
    And the history of run 1 with status "succeeded" is
      | a |
      | c |

  @RTRY-026 @must @spec @spec-4.2 @clock
  Scenario: A call of get_sync_speed that fails once does not end the run
    It is safe for a destination to fail any method call on an unexpected error.
    Cause: only batches are tried again.
    Fix: call get_sync_speed again, after a wait.
    Good: HTTP 500, then {"maximum_batch_size":100,…}, and the run is completed
    Bad: HTTP 500, and the run has failed

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers the first "get_sync_speed" with HTTP 500
    When the sync runs
    Then run 1 is completed
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |

  @RTRY-027 @must @published @spec-4.2 @spec-7.2.5 @clock
  Scenario: A delete that is refused is sent again by the next run
    The record is still there. A mirror is equal to its source only when its delete was accepted.
    Cause: the record is forgotten as soon as its delete is sent.
    Fix: keep the record in the account until its delete is acknowledged.
    Good: run 3 sends delete of b
    Bad: run 3 sends nothing

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the destination answers record "b" with a refusal
    And the source then holds
      | id  | name  |
      | "a" | "Ada" |
      | "c" | "Cy"  |
    And the sync runs
    And the destination is well again
    And the sync runs
    Then run 3 sends
      | delete | b |
    And the destination holds
      | id  | name  |
      | "a" | "Ada" |
      | "c" | "Cy"  |
