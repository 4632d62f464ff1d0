Feature: What arrives
  What a destination has after real runs: the order of columns, appended records, replaced
  tables, new columns, and messages of a topic.

  @ARR-001 @must @spec @spec-2.6 @spec-4.1.3
  Scenario: Columns arrive in the order that was asked for
    The readers of a sheet see its columns from left to right.
    Cause: field_order is stored and not read, or another order is the default.
    Fix: write the columns by name, and with mapping_order in the order of the mappings.
    Good: mappings name, id, amount and no field_order: {"amount":1,"id":"r1","name":"Ada"}
    Bad: mappings name, id, amount and no field_order: {"name":"Ada","id":"r1","amount":1}

    When a sync writes to an object with field ordering for each of these:
      | field_order              |
      | nothing                  |
      | alphabetical_column_name |
      | mapping_order            |
    Then every record arrives with its columns in the order that was asked for

  @ARR-002 @must @spec @spec-2.6 @clock
  Scenario: An append sync adds each record once
    What is appended twice stands in a log twice, and no later run takes it away.
    Cause: every row is sent in every run, or a row that has changed counts as a new one.
    Fix: compare primary keys with what was sent, and append only what is new.
    Good: run 1 appends a and b, run 2 appends c, run 3 appends nothing
    Bad: run 2 appends a, b and c

    Given an object with append
    And these rows in the source:
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    And a sync with:
      | field                     | value                  |
      | operation                 | "append"               |
      | mappings                  | <two mappings>         |
      | historical_sync_operation | "backfill_all_records" |
    When the sync runs
    Then run 1 appends "a, b"
    When the source then holds
      | id | name |
      | a  | Abe  |
      | b  | Bob  |
      | c  | Cy   |
    And the sync runs
    And the sync runs
    Then run 2 appends "c"
    And run 3 appends ""
    And the object holds exactly
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |

  @ARR-003 @must @spec @spec-2.6 @clock
  Scenario: Skipped records never arrive, and what comes after them does
    Who skips the history of a log has it elsewhere already.
    Cause: the first run sends nothing and remembers nothing, so the next one sends everything.
    Fix: take what the first run finds as sent, and append what comes later.
    Good: run 1 appends nothing, run 2 appends c
    Bad: run 1 appends nothing, run 2 appends a, b and c

    Given an object with append
    And these rows in the source:
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    And a sync with:
      | field                     | value                  |
      | operation                 | "append"               |
      | mappings                  | <two mappings>         |
      | historical_sync_operation | "skip_current_records" |
    When the sync runs
    Then run 1 counts
      | records_processed | 0 |
    When the source then holds
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |
    And the sync runs
    Then run 2 appends "c"
    And the object holds exactly
      | id | name |
      | c  | Cy   |

  @ARR-004 @must @published @spec-2.6 @clock
  Scenario: A run appends the rows from the last high-water mark up to the next, without it
    More rows of the latest moment may follow. Those that come after the run are lost when it was sent already.
    Cause: the bounds are taken on the wrong side.
    Fix: send the rows at or after the previous mark and before the latest moment of the source.
    Good: rows at 9:00 and 9:30: run 1 appends that of 9:00; after another at 9:30 and one at 10:00 run 2 appends both of 9:30
    Bad: rows at 9:00 and 9:30: run 1 appends both, and the second one of 9:30 never arrives

    Given an object with append
    And these rows in the source:
      | id  | name  | at                     |
      | "a" | "Ada" | "2026-03-04T09:00:00Z" |
      | "b" | "Bob" | "2026-03-04T09:30:00Z" |
    And a sync with:
      | field                     | value                  |
      | operation                 | "append"               |
      | mappings                  | <two mappings>         |
      | historical_sync_operation | "backfill_all_records" |
      | high_water_mark_attribute | "at"                   |
    When the sync runs
    And the source gets these rows:
      | id  | name  | at                     |
      | "c" | "Cy"  | "2026-03-04T09:30:00Z" |
      | "d" | "Dan" | "2026-03-04T10:00:00Z" |
    And the sync runs
    And the sync runs
    Then run 1 appends "a"
    And run 2 appends "b, c"
    And run 3 appends ""
    And the object holds exactly
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | c  | Cy   |

  @ARR-005 @must @spec @spec-2.6
  Scenario: upload_and_swap replaces the whole table, whoever has written into it
    The strategy promises a copy of the source. A record of another writer in it is a record that the source does not have.
    Cause: only what the sync itself has sent before is compared with the source.
    Fix: put the rows of the source in the place of all that the table held.
    Good: x stands in the table: after the run it holds a and b
    Bad: x stands in the table: after the run it holds a, b and x

    Given an object that can be mirrored
    And another sync has written into it
      | id | name |
      | b  | Ben  |
      | x  | Xan  |
    And these rows in the source:
      | id  | name  |
      | "a" | "Ada" |
      | "b" | "Bob" |
    And a sync with:
      | field           | value             |
      | operation       | "mirror"          |
      | mappings        | <two mappings>    |
      | mirror_strategy | "upload_and_swap" |
    When the sync runs
    Then the object holds exactly
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
    Given another sync has written into it
      | id | name |
      | a  | Abe  |
      | y  | Yan  |
    When the sync runs
    Then the object holds exactly
      | id | name |
      | a  | Ada  |
      | b  | Bob  |

  @ARR-006 @must @spec @published @spec-2.6
  Scenario: A column that is added to a table is mapped and filled for all records
    A new column in a table is a new field of every record, not only of those that change later.
    Cause: the mappings are made when the sync is, or the new field is sent with later changes only.
    Fix: look at the columns before each run, add the mapping, and send every record in a full sync.
    Good: a column "city" is added: the sync shows its mapping, and run 2 has "full_sync":true and all records
    Bad: a column "city" is added: run 2 has "source_record_updates":0

    Given a destination that makes fields on write
    And a table of its own with
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
    And a sync with:
      | field          | value                 |
      | field_behavior | "sync_all_properties" |
    When the sync runs
    And the table gets a column "city" with "Graz"
    And the sync runs
    Then the sync maps the column "city" to the field "city"
    And the destination holds
      | id | name | city |
      | a  | Ada  | Graz |
      | b  | Bob  | Graz |
    And the run shows:
      | field     | value       |
      | status    | "completed" |
      | full_sync | true        |

  @ARR-007 @must @published @spec-2.6
  Scenario: A live sync runs when messages come
    A stream is followed all the time: no schedule and no trigger is needed.
    Cause: live is stored, and the sync waits to be triggered.
    Fix: read the topic as messages come, and write the latest one of each identifier.
    Good: messages for a, b and a again: the destination has the second a, and b
    Bad: messages for a, b and a again: the destination has nothing until the sync is triggered

    Given a live sync of a topic with sync_behavior_family "mapRecords"
    When a producer sends
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
      | a  | Abe  |
    Then the destination holds
      | id | name |
      | a  | Abe  |
      | b  | Bob  |
    When a producer sends
      | id | name |
      | c  | Cy   |
      | b  | Bea  |
    Then the destination holds
      | id | name |
      | a  | Abe  |
      | b  | Bea  |
      | c  | Cy   |

  @ARR-008 @should @published @spec-2.6
  Scenario: Each message is one event, and is sent once
    Two messages about one person are two events. An event that is sent twice has happened twice.
    Cause: messages are folded into records, or every run reads the topic from its beginning.
    Fix: send each message in the order of its identifier's messages, and never again once it was acknowledged.
    Good: messages for a, a and b, then one for a: four records are sent
    Bad: messages for a, a and b, then one for a: two records are sent, and then another

    Given a live sync of a topic with sync_behavior_family "activateEvents"
    When a producer sends
      | id | name  |
      | a  | click |
      | a  | click |
      | b  | buy   |
    And a producer sends
      | id | name |
      | a  | buy  |
    Then the destination was sent, in the order of each identifier
      | id | name  |
      | a  | click |
      | a  | click |
      | a  | buy   |
      | b  | buy   |
