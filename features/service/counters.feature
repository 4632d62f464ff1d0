Feature: Counters of a run
  How many records a run has read, found, sent, and what became of them.

  @CNT-001 @must @spec @spec-2.9
  Scenario: A completed run has all eight counters
    Dashboards add them up: a counter that is missing is a gap in every sum.
    Cause: a counter that is zero is left out, or null.
    Fix: give each counter as an integer once the run is completed.
    Good: "source_record_invalids":0,"records_invalid":0
    Bad: "source_record_invalids":null,"records_invalid":null

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    Then run 1 counts
      | source_record_count    | 3 |
      | source_record_updates  | 3 |
      | source_record_deletes  | 0 |
      | source_record_invalids | 0 |
      | records_processed      | 3 |
      | records_updated        | 3 |
      | records_failed         | 0 |
      | records_invalid        | 0 |

  @CNT-002 @must @spec @spec-1
  Scenario: source_record_count is the number of records that were read
    It is how one sees that the source was read as a whole, also when little of it has changed.
    Cause: only the differences are counted.
    Fix: count every row of the source.
    Good: three rows, one of which has changed: "source_record_count":3
    Bad: three rows, one of which has changed: "source_record_count":1

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the source then holds
      | id | name |
      | a  | Ada  |
      | b  | Bea  |
      | c  | Cy   |
    And the sync runs
    Then run 2 counts
      | source_record_count | 3 |

  @CNT-003 @must @published @spec-2.9
  Scenario: A run counts the records that it has found new or changed
    The counters tell how much a run had to do.
    Cause: all rows that were read are counted.
    Fix: count in source_record_updates what has to be sent.
    Good: one row has changed: "source_record_updates":1,"records_updated":1
    Bad: one row has changed: "source_record_updates":3

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the source then holds
      | id | name |
      | a  | Ada  |
      | b  | Bea  |
      | c  | Cy   |
    And the sync runs
    Then run 2 counts
      | source_record_updates | 1 |
      | records_processed     | 1 |
      | records_updated       | 1 |

  @CNT-004 @must @spec @spec-1
  Scenario: A run that sends nothing counts nothing as updated
    Who reads that records were updated looks for them in the destination.
    Cause: records that have not changed count as updated.
    Fix: count in records_updated what the destination has accepted in this run.
    Good: nothing has changed: "records_processed":0,"records_updated":0
    Bad: nothing has changed: "records_updated":3

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the sync runs
    Then run 2 counts
      | records_processed | 0 |
      | records_updated   | 0 |
      | records_failed    | 0 |

  @CNT-005 @must @published @spec-2.9
  Scenario: Deleted records are counted, and were processed
    In the published example 12 updates and 2 deletes make 14 processed records.
    Cause: deletes stand in no sum.
    Fix: count them in source_record_deletes and records_processed, and in records_updated once they are accepted.
    Good: "source_record_updates":1,"source_record_deletes":1,"records_processed":2,"records_updated":2
    Bad: "source_record_updates":1,"source_record_deletes":1,"records_processed":1,"records_updated":1

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the source then holds
      | id | name |
      | a  | Abe  |
      | b  | Bob  |
    And the sync runs
    Then run 2 counts
      | source_record_updates | 1 |
      | source_record_deletes | 1 |
      | records_processed     | 2 |
      | records_updated       | 2 |

  @CNT-006 @must @spec @spec-1
  Scenario: Invalid records are counted as such
    A row that cannot be sent is a fault of the source. Among the failed ones it would be looked for in the destination.
    Cause: rows without an identifier are dropped, or count as failed.
    Fix: count them in source_record_invalids and records_invalid.
    Good: "source_record_invalids":1,"records_invalid":1
    Bad: "records_invalid":0,"records_failed":1

    Given a sync with operation "upsert" of
      | id   | name |
      | a    | Ada  |
      | NULL | Nil  |
      | b    | Bob  |
    When the sync runs
    Then run 1 counts
      | source_record_invalids | 1 |
      | records_invalid        | 1 |

  @CNT-007 @should @published @spec-2.9
  Scenario: Invalid records stand outside of those that were processed
    In the published example 14 records are processed beside one that is invalid.
    Cause: invalid records are added to records_processed.
    Fix: count in records_processed only what was to be sent.
    Good: "records_processed":2,"records_invalid":1
    Bad: "records_processed":3,"records_invalid":1

    Given a sync with operation "upsert" of
      | id   | name |
      | a    | Ada  |
      | NULL | Nil  |
      | b    | Bob  |
    When the sync runs
    Then run 1 counts
      | source_record_updates | 2 |
      | records_processed     | 2 |
      | records_updated       | 2 |

  @CNT-008 @must @spec @spec-1 @clock
  Scenario: A record that is refused all through a run counts once, as failed
    The counters are about records. Tries are the business of the service.
    Cause: each failed result is counted.
    Fix: count a record when the run has done with it.
    Good: b is refused three times: "records_failed":1
    Bad: b is refused three times: "records_failed":3

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then run 1 counts
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
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    And the destination answers record "b" with a refusal once
    When the sync runs
    Then run 1 counts
      | records_processed | 3 |
      | records_updated   | 3 |
      | records_failed    | 0 |

  @CNT-010 @must @spec @spec-1 @clock
  Scenario: Each record of a batch that was split counts once
    A batch of four that fails and is split is sent in many calls, and has four records.
    Cause: the records of each try are added.
    Fix: count a record when the run has done with it.
    Good: "records_processed":4,"records_updated":3,"records_failed":1
    Bad: "records_processed":10

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
      | d  | Dan  |
    And the destination answers every sync_batch with record "d" with an error object
    When the sync runs
    Then run 1 counts
      | records_processed | 4 |
      | records_updated   | 3 |
      | records_failed    | 1 |

  @CNT-011 @should @published @spec-2.9 @clock
  Scenario: What was processed is what was found, and what became of it
    In the published example 14 processed records are 12 updates and 2 deletes, and 13 updated and 1 failed.
    Cause: the sums are kept apart, and drift.
    Fix: let records_processed be source_record_updates and source_record_deletes, and records_updated and records_failed.
    Good: "source_record_updates":2,"source_record_deletes":1,"records_processed":3,"records_updated":2,"records_failed":1
    Bad: "source_record_updates":2,"source_record_deletes":1,"records_processed":2,"records_updated":2,"records_failed":1

    Given a sync with operation "mirror" and mirror_strategy "sync_updates_and_deletes" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the source then holds
      | id   | name |
      | a    | Abe  |
      | b    | Bob  |
      | d    | Dan  |
      | NULL | Nil  |
    And the destination answers record "d" with a refusal
    And the sync runs
    Then the sums of run 2 agree

  @CNT-012 @should @published @spec-7.2.4 @clock
  Scenario: The history of a run has as many records as its counters say
    Who reads that one record has failed looks for that one in the history.
    Cause: the history has only what was accepted.
    Fix: write every record of a run into its history, once.
    Good: "records_updated":2,"records_failed":1, and two records that succeeded beside one that was rejected
    Bad: "records_updated":2,"records_failed":1, and two records

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    And the destination answers record "b" with a refusal
    When the sync runs
    Then the counters of run 1 agree with its history
    And run 1 counts
      | records_updated | 2 |

  @CNT-013 @must @spec @spec-1 @clock
  Scenario: A run that nothing came of counts no record as updated
    The destination has acknowledged nothing.
    Cause: records count as updated when they are sent.
    Fix: count a record as updated when the destination has said that it is.
    Good: "status":"failed","records_updated":0
    Bad: "status":"failed","records_updated":3

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    And the destination answers every sync_batch with HTTP 500
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
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    When the sync runs
    And the sync runs with force_full_sync in the query
    Then run 2 counts
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
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
      | d  | Dan  |
      | e  | Eve  |
    When the sync runs
    And the source then holds
      | id | name |
      | a  | Abe  |
      | b  | Bob  |
      | c  | Cy   |
      | f  | Fay  |
      | g  | Gus  |
    And the destination answers record "g" with a refusal
    And the sync runs
    Then run 2 counts
      | source_record_count    | 5 |
      | source_record_updates  | 3 |
      | source_record_deletes  | 2 |
      | source_record_invalids | 0 |
      | records_processed      | 5 |
      | records_updated        | 4 |
      | records_failed         | 1 |
      | records_invalid        | 0 |

  @CNT-016 @must @published @spec-2.9 @clock
  Scenario: What was processed is updated, failed, or invalid
    One published example counts invalid records among those processed, the other does not. In neither is any other number right.
    Cause: the sum is kept apart, and drifts.
    Fix: let records_processed be records_updated and records_failed, and leave records_invalid outside.
    Good: "records_processed":3,"records_updated":2,"records_failed":1,"records_invalid":2
    Bad: "records_processed":4,"records_updated":2,"records_failed":1,"records_invalid":2

    Given a sync with operation "upsert" of
      | id   | name |
      | a    | Ada  |
      | b    | Bob  |
      | c    | Cy   |
      | NULL | Nil  |
      | NULL | Nix  |
    And the destination answers record "c" with a refusal
    When the sync runs
    Then run 1 counts
      | source_record_invalids | 2 |
      | records_updated        | 2 |
      | records_failed         | 1 |
      | records_invalid        | 2 |
    And records_processed of run 1 is one of "3, 5"
