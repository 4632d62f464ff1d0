Feature: Counters of a run
  How many records a run has read, found, sent, and what became of them.

  @CNT-002 @must @spec @spec-1
  Scenario: source_record_count is the number of records that were read
    It is how one sees that the source was read as a whole, also when little of it has changed.
    Cause: only the differences are counted.
    Fix: count every row of the source.
    Good: three rows, one of which has changed: "source_record_count":3
    Bad: three rows, one of which has changed: "source_record_count":1

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
    Then run 2 shows:
      | field | value |
      | source_record_count | 3 |

  @CNT-004 @must @spec @spec-1
  Scenario: A run that sends nothing counts nothing as updated
    Who reads that records were updated looks for them in the destination.
    Cause: records that have not changed count as updated.
    Fix: count in records_updated what the destination has accepted in this run.
    Good: nothing has changed: "records_processed":0,"records_updated":0
    Bad: nothing has changed: "records_updated":3

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the sync runs
    Then run 2 shows:
      | field | value |
      | records_processed | 0 |
      | records_updated   | 0 |
      | records_failed    | 0 |

  @CNT-006 @must @spec @spec-1
  Scenario: Invalid records are counted as such
    A row that cannot be sent is a fault of the source. Among the failed ones it would be looked for in the destination.
    Cause: rows without an identifier are dropped, or count as failed.
    Fix: count them in source_record_invalids and records_invalid.
    Good: "source_record_invalids":1,"records_invalid":1
    Bad: "records_invalid":0,"records_failed":1

    Given a sync with operation "upsert" of
      | id   | name  |
      | "a"  | "Ada" |
      | null | "Nil" |
      | "b"  | "Bob" |
    When the sync runs
    Then run 1 shows:
      | field | value |
      | source_record_invalids | 1 |
      | records_invalid        | 1 |

  @CNT-008 @must @spec @spec-1 @clock
  Scenario: A record that is refused all through a run counts once, as failed
    The counters are about records. Tries are the business of the service.
    Cause: each failed result is counted.
    Fix: count a record when the run has done with it.
    Good: b is refused three times: "records_failed":1
    Bad: b is refused three times: "records_failed":3

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then run 1 shows:
      | field | value |
      | records_processed | 3 |
      | records_updated   | 2 |
      | records_failed    | 1 |

  @CNT-009 @must @spec @spec-1 @clock
  Scenario: A record that is accepted at last does not count as failed
    It is in the destination. A failure that is none raises alerts.
    Cause: what was refused once stays in the sum of the failed ones.
    Fix: count a record by its last result.
    Good: b is refused, then accepted: "records_updated":3,"records_failed":0
    Bad: b is refused, then accepted: "records_updated":3,"records_failed":1

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal once
    When the sync runs
    Then run 1 shows:
      | field | value |
      | records_processed | 3 |
      | records_updated   | 3 |
      | records_failed    | 0 |

  @CNT-012 @should @published @spec-7.2.4 @clock
  Scenario: The history of a run has as many records as its counters say
    Who reads that one record has failed looks for that one in the history.
    Cause: the history has only what was accepted.
    Fix: write every record of a run into its history, once.
    Good: "records_updated":2,"records_failed":1, and two records that succeeded beside one that was rejected
    Bad: "records_updated":2,"records_failed":1, and two records

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then the counters of run 1 agree with its history
    And run 1 shows:
      | field | value |
      | records_updated | 2 |

  @CNT-013 @must @spec @spec-1 @clock
  Scenario: A run that nothing came of counts no record as updated
    The destination has acknowledged nothing.
    Cause: records count as updated when they are sent.
    Fix: count a record as updated when the destination has said that it is.
    Good: "status":"failed","records_updated":0
    Bad: "status":"failed","records_updated":3

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    And the destination answers every "sync_batch" with HTTP 500
    When the sync runs
    Then run 1 is failed
    And run 1 counts no record as updated

  @CNT-014 @should @published @spec-2.9
  Scenario: A full sync counts every record that it sends
    Sums that leave out what was sent for durability do not fit what the destination has seen.
    Cause: only records that have changed are counted.
    Fix: count what is sent.
    Good: "full_sync":true,"source_record_updates":3,"records_updated":3
    Bad: "full_sync":true,"source_record_updates":0,"records_updated":3

    Given a sync with operation "upsert" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
    When the sync runs
    And the sync runs with force_full_sync in the query
    Then run 2 shows:
      | field | value |
      | source_record_updates | 3 |
      | records_updated       | 3 |

  @CNT-015 @must @published @spec-2.9 @clock
  Scenario: Every counter of a run with changes, deletes and failures is exact
    Both published examples agree where no record is invalid: what was processed has been updated, or has failed.
    Cause: a record is counted before it is known what becomes of it, or a sum leaves out one kind.
    Fix: count each record once, when the run has done with it, and let the sums follow.
    Good: 5 rows, 3 of them new or changed, 2 gone, 1 refused: 5 processed, 4 updated, 1 failed
    Bad: 5 rows, 3 of them new or changed, 2 gone, 1 refused: 4 processed, 4 updated, 1 failed

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
      | "d" | "Dan" |
      | "e" | "Eve" |
    When the sync runs
    And the source then holds
      | id  | name  |
      | "a" | "Abe" |
      | "b" | "Bob" |
      | "c" | "Cy"  |
      | "f" | "Fay" |
      | "g" | "Gus" |
    And the destination answers record "g" with a refusal
    And the sync runs
    Then run 2 shows:
      | field | value |
      | source_record_count    | 5 |
      | source_record_updates  | 3 |
      | source_record_deletes  | 2 |
      | source_record_invalids | 0 |
      | records_processed      | 5 |
      | records_updated        | 4 |
      | records_failed         | 1 |
      | records_invalid        | 0 |
