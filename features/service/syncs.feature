Feature: Syncs
  A sync is a resource: what a client writes into it is what it reads.

  @SYN-001 @must @spec @spec-2.6 @spec-2
  Scenario: A sync has an id, a status and its times
    Clients keep the id, show the status, and find out by the times what has changed.
    Cause: a field is left out, or the database's own form of a value is passed on.
    Fix: answer id as an integer, status as a string, and both times as ISO 8601 in UTC.
    Good: GET /syncs/309 -> 200 {"status":"success","data":{"id":309,"status":"ready","created_at":"2026-03-04T09:30:00Z","updated_at":"2026-03-04T09:30:00Z","…":"…"}}
    Bad: GET /syncs/309 -> 200 {"status":"success","data":{"id":"309","status":1,"created_at":1772616600,"updated_at":null,"…":"…"}}

    Given a sync
    When a client makes each call with its own token:
      | GET /syncs/{sync} |
    Then data of each answer has the members:
      | id | integer |
      | status | text |
      | created_at | timestamp |
      | updated_at | timestamp |

  @SYN-002 @must @spec @spec-4
  Scenario: A sync is read by its id
    Clients look at the status of an answer before its data.
    Cause: the resource is answered bare, or with another word.
    Fix: answer {"status":"success","data":{…}}.
    Good: GET /syncs/309 -> 200 {"status":"success","data":{"id":309,"…":"…"}}
    Bad: GET /syncs/309 -> 200 {"status":"ok","data":{"id":309,"…":"…"}}

    Given a sync
    When a client makes each call with its own token:
      | GET /syncs/{sync} |
    Then the status of each answer is one of "success"

  @SYN-003 @must @published @spec-4
  Scenario: A new sync answers with its id
    The id in the answer is all that a client gets to know of the sync that it has made.
    Cause: the whole sync is answered, or the word of another call.
    Fix: answer {"status":"created","data":{"sync_id":…}} with the id as an integer.
    Good: POST /syncs -> 200 {"status":"created","data":{"sync_id":4545}}
    Bad: POST /syncs -> 200 {"status":"success","data":{"sync_id":4545}}

    When a client creates a sync with:
      | field  | value |
      | paused | false |
    Then the status of each answer is one of "created"
    And data of each answer has the values:
      | sync_id | {sync} |

  @SYN-004 @must @spec @spec-2.6
  Scenario: A sync keeps its operation
    The operation decides how records are written. Another one than was asked for destroys data.
    Cause: operations are folded into those that the engine has.
    Fix: store and show the operation as it was sent.
    Good: POST /syncs {"operation":"mirror","…":"…"}, then GET /syncs/309 -> {"status":"success","data":{"operation":"mirror","…":"…"}}
    Bad: POST /syncs {"operation":"mirror","…":"…"}, then GET /syncs/309 -> {"status":"success","data":{"operation":"upsert","…":"…"}}

    When a client creates a sync with each of these:
      | field     | value    |
      | operation | "insert" |
      | operation | "update" |
      | operation | "upsert" |
      | operation | "mirror" |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-006 @must @spec @spec-2.6
  Scenario: An unknown operation is refused
    A misspelt operation must not become another one.
    Cause: an unknown word falls back to a default.
    Fix: refuse every operation but append, insert, mirror, update and upsert.
    Good: POST /syncs {"operation":"merge","…":"…"} -> 400 {"status":"error","message":"operation: unknown value \"merge\""}
    Bad: POST /syncs {"operation":"merge","…":"…"} -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with each of these:
      | field     | value    |
      | operation | "merge"  |
      | operation | "UPSERT" |
      | operation | ""       |
      | operation | "delete" |
    Then every request is refused

  @SYN-007 @must @spec @spec-2.6 @spec-2.8
  Scenario: A sync shows where it reads and where it writes
    Tools that keep syncs as code compare both ends with what they have written.
    Cause: the names of the database are shown, or ids as strings.
    Fix: show connection_id as an integer, the object of the destination by its full_name, and the dataset by type and id.
    Good: {"destination_attributes":{"connection_id":12,"object":"thing"},"source_attributes":{"connection_id":7,"object":{"type":"dataset","id":5}}}
    Bad: {"destination_attributes":{"connection_id":"12","object":"Thing"},"source_attributes":{"connection_id":7,"object":{"type":"sql","id":5}}}

    Given a sync
    Then the sync shows:
      | field                                | value         |
      | destination_attributes.connection_id | {destination} |
      | destination_attributes.object        | "thing"       |
      | source_attributes.connection_id      | {source}      |
      | source_attributes.object.type        | "dataset"     |
      | source_attributes.object.id          | {dataset}     |

  @SYN-008 @must @spec @spec-2.8
  Scenario: A sync reads a table by its three names
    A table has no id that a client would know; catalog, schema and name are its name.
    Cause: one of the three is not stored.
    Fix: accept and show {"type":"table","table_catalog":…,"table_schema":…,"table_name":…}.
    Good: {"source_attributes":{"connection_id":7,"object":{"type":"table","table_catalog":"CONF","table_schema":"PUBLIC","table_name":"USERS"}}}
    Bad: {"source_attributes":{"connection_id":7,"object":{"type":"table","table_name":"USERS"}}}

    Given a table of the source
    When a client creates a sync with:
      | field            | value   |
      | source_attributes | {table} |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-009 @must @spec @spec-2.6
  Scenario: A label is kept as it was written
    People find their syncs by the label.
    Cause: labels are cut, or escaped for a page.
    Fix: store and show the text as it was sent, also when it is changed.
    Good: POST /syncs {"label":"Rücken & <Co> 東京","…":"…"}, then GET -> {"status":"success","data":{"label":"Rücken & <Co> 東京","…":"…"}}
    Bad: POST /syncs {"label":"Rücken & <Co> 東京","…":"…"}, then GET -> {"status":"success","data":{"label":"R&uuml;cken &amp;","…":"…"}}

    When a client creates a sync with each of these:
      | field | value                                                              |
      | label | "zz-conf Rücken & <Co> \"東京\" 🙂"                                |
      | label | "zz-conf a label of some length, as people write them into syncs" |
    And a client updates the sync with each of these:
      | field | value              |
      | label | "zz-conf another"  |
    Then every sync shows what it was given

  @SYN-010 @must @spec @spec-4 @spec-2.6
  Scenario: The list shows a sync as it is read by its id
    Clients read the list once, in place of every sync.
    Cause: the list has a shorter form of its own.
    Fix: make each element of the list the same resource.
    Good: GET /syncs -> 200 {"status":"success","pagination":{"…":"…"},"data":[{"id":309,"mappings":[{"…":"…"}],"…":"…"}]}
    Bad: GET /syncs -> 200 {"status":"success","pagination":{"…":"…"},"data":[{"id":309}]}

    Given a sync
    Then the list "/syncs" shows the sync as it is read by its id

  @SYN-011 @must @spec @spec-4 @spec-4.1.1
  Scenario: An update answers with the changed sync
    A client shows what the answer has, and does not ask again.
    Cause: the answer is made from what was read before the change, or is empty.
    Fix: answer 200 {"status":"updated","data":{…}} with the sync as it now is.
    Good: PATCH /syncs/309 {"paused":true,"…":"…"} -> 200 {"status":"updated","data":{"id":309,"paused":true,"…":"…"}}
    Bad: PATCH /syncs/309 {"paused":true,"…":"…"} -> 200 {"status":"success","data":{}}

    Given a sync
    When a client updates the sync with:
      | field  | value |
      | paused | true  |
    Then the status of each answer is one of "updated"
    And data of each answer has the values:
      | id | {sync} |
      | paused | true |
      | operation | "upsert" |

  @SYN-012 @must @spec @spec-4.1.1 @differs-partial-sync-update
  Scenario: An update without a required field is refused
    operation, both ends and the mappings belong together: an update that has only some of them is a mistake.
    Cause: what is missing is taken from the stored sync.
    Fix: refuse an update without operation, destination_attributes, mappings or source_attributes.
    Good: PATCH /syncs/309 {"paused":true} -> 400 {"status":"error","message":"operation: is required"}
    Bad: PATCH /syncs/309 {"paused":true} -> 200 {"status":"updated","data":{"id":309,"…":"…"}}

    Given a sync
    When a client updates the sync with each of these:
      | field                  | value   |
      | operation              | nothing |
      | destination_attributes | nothing |
      | mappings               | nothing |
      | source_attributes      | nothing |
    Then every request is refused

  @SYN-013 @must @spec @spec-4.1.1
  Scenario: An update needs no more than its four required fields
    All other fields are optional. A client that does not know one cannot send it.
    Cause: a field of the own form is required.
    Fix: accept an update with operation, destination_attributes, mappings and source_attributes alone.
    Good: PATCH /syncs/309 {"operation":"upsert","destination_attributes":{"…":"…"},"mappings":[{"…":"…"}],"source_attributes":{"…":"…"}} -> 200 {"status":"updated","data":{"…":"…"}}
    Bad: PATCH /syncs/309 {"operation":"upsert","destination_attributes":{"…":"…"},"mappings":[{"…":"…"}],"source_attributes":{"…":"…"}} -> 400 {"status":"error","message":"label is required"}

    Given a sync
    When a client updates the sync with each of these:
      | field            | value   |
      | label            | nothing |
      | mode             | nothing |
      | alert_attributes | nothing |
    And a client updates the sync with its required fields alone
    Then every request is accepted

  @SYN-014 @should @policy @spec-4.1.1
  @needs-SYN-013
  Scenario: An update keeps what it leaves out
    A client that changes the mappings does not mean to wake a paused sync.
    Cause: the stored sync is replaced by the body.
    Fix: lay the body over the stored sync.
    Good: PATCH /syncs/309 without paused, then GET /syncs/309 -> {"status":"success","data":{"paused":true,"…":"…"}}
    Bad: PATCH /syncs/309 without paused, then GET /syncs/309 -> {"status":"success","data":{"paused":false,"…":"…"}}

    Given a sync with:
      | field                   | value                                         |
      | paused                  | true                                          |
      | label                   | "zz-conf kept"                                |
      | failed_record_notifications_threshold_percent | 12                      |
    When a client updates the sync with its required fields alone
    Then the sync shows:
      | field                                         | value          |
      | paused                                        | true           |
      | label                                         | "zz-conf kept" |
      | failed_record_notifications_threshold_percent | 12             |

  @SYN-015 @must @spec @spec-4.1.2
  Scenario: A new sync that is only validated is not made
    A form is checked while it is filled in. Each check would leave a sync behind.
    Cause: validate_only is not read.
    Fix: check the body, answer, and store nothing.
    Good: POST /syncs {"validate_only":true,"…":"…"} -> 200 {"status":"success","data":{"…":"…"}}, then GET /syncs has no new sync
    Bad: POST /syncs {"validate_only":true,"…":"…"} -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with:
      | field         | value |
      | validate_only | true  |
      | label | "{this_name}" |
    Then every request is accepted
    And the list "/syncs" shows "{this_name}" nowhere

  @SYN-016 @must @spec @spec-4.1.2
  Scenario: An update that is only validated changes nothing
    The sync goes on with what it has until the user decides.
    Cause: validate_only is read when a sync is made, and not when it is changed.
    Fix: check the body, answer, and store nothing.
    Good: PATCH /syncs/309 {"validate_only":true,"paused":true,"…":"…"}, then GET -> {"status":"success","data":{"paused":false,"…":"…"}}
    Bad: PATCH /syncs/309 {"validate_only":true,"paused":true,"…":"…"}, then GET -> {"status":"success","data":{"paused":true,"…":"…"}}

    Given a sync with:
      | field  | value |
      | paused | false |
    When a client updates the sync with:
      | field         | value    |
      | validate_only | true     |
      | paused        | true     |
      | operation     | "insert" |
    Then every request is accepted
    And the sync shows:
      | field     | value    |
      | paused    | false    |
      | operation | "upsert" |

  @SYN-019 @must @spec @spec-4.1.3 @spec-2.6
  Scenario: An object with an order takes both orders
    The order of columns is what the readers of a sheet see.
    Cause: only the default is stored.
    Fix: store and show alphabetical_column_name and mapping_order, and refuse other words.
    Good: POST /syncs {"field_order":"mapping_order","…":"…"}, then GET -> {"status":"success","data":{"field_order":"mapping_order","…":"…"}}
    Bad: POST /syncs {"field_order":"mapping_order","…":"…"}, then GET -> {"status":"success","data":{"field_order":"alphabetical_column_name","…":"…"}}

    Given an object with field ordering
    And syncs that have:
      | field     | value    |
      | operation | "append" |
    When a client creates a sync with each of these:
      | field       | value                      |
      | field_order | "alphabetical_column_name" |
      | field_order | "mapping_order"            |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field       | value            |
      | field_order | "by_destination" |
    Then every request is refused

  @SYN-021 @must @spec @spec-4.1.4 @spec-2.6
  Scenario: An append sync says what becomes of historical records
    The first sync of a log sends years of events, or none. The client decides.
    Cause: only one of the two is known.
    Fix: store and show skip_current_records and backfill_all_records, and refuse other words.
    Good: POST /syncs {"operation":"append","historical_sync_operation":"skip_current_records","…":"…"}, then GET shows it
    Bad: POST /syncs {"operation":"append","historical_sync_operation":"skip_current_records","…":"…"}, then GET shows backfill_all_records

    Given an object with append
    And syncs that have:
      | field     | value    |
      | operation | "append" |
    When a client creates a sync with each of these:
      | field                     | value                  |
      | historical_sync_operation | "skip_current_records" |
      | historical_sync_operation | "backfill_all_records" |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field                     | value        |
      | historical_sync_operation | "last_month" |
    Then every request is refused

  @SYN-023 @must @spec @spec-2.6
  Scenario: The first run of an append sync heeds the history
    Skipped records must not arrive later, and backfilled ones must not be missing.
    Cause: the setting is stored and not read.
    Fix: take what is there as sent with skip_current_records, and send it with backfill_all_records.
    Good: 3 rows, skip_current_records: the first run has "records_processed":0
    Bad: 3 rows, skip_current_records: the first run has "records_processed":3

    Given an object with append
    And a sync with:
      | field                     | value                  |
      | operation                 | "append"               |
      | historical_sync_operation | "skip_current_records" |
    When the sync runs
    Then the run shows:
      | field             | value       |
      | status            | "completed" |
      | records_processed | 0           |
    Given a sync with:
      | field                     | value                  |
      | operation                 | "append"               |
      | historical_sync_operation | "backfill_all_records" |
    When the sync runs
    Then the run shows:
      | field             | value       |
      | status            | "completed" |
      | records_processed | 3           |

  @SYN-024 @must @spec @spec-4.1.4 @spec-2.6
  Scenario: A mirror keeps its strategy
    The strategy decides what is deleted.
    Cause: only the default is stored.
    Fix: store and show all three strategies, and refuse other words.
    Good: POST /syncs {"operation":"mirror","mirror_strategy":"sync_updates_and_nulls","…":"…"}, then GET shows it
    Bad: POST /syncs {"operation":"mirror","mirror_strategy":"sync_updates_and_nulls","…":"…"}, then GET shows sync_updates_and_deletes

    Given syncs that have:
      | field     | value    |
      | operation | "mirror" |
    When a client creates a sync with each of these:
      | field           | value                      |
      | mirror_strategy | "sync_updates_and_deletes" |
      | mirror_strategy | "sync_updates_and_nulls"   |
      | mirror_strategy | "upload_and_swap"          |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field           | value      |
      | mirror_strategy | "truncate" |
    Then every request is refused

  @SYN-026 @must @spec @spec-2.6
  Scenario: A sync keeps its field behavior
    It decides whether fields are added by themselves.
    Cause: the field is derived from the mappings.
    Fix: store and show sync_all_properties and specific_properties, and refuse other words.
    Good: POST /syncs {"field_behavior":"sync_all_properties","…":"…"}, then GET shows it
    Bad: POST /syncs {"field_behavior":"sync_all_properties","…":"…"}, then GET shows specific_properties

    Given a destination that makes fields on write
    When a client creates a sync with each of these:
      | field          | value                 |
      | field_behavior | "sync_all_properties" |
      | field_behavior | "specific_properties" |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field          | value          |
      | field_behavior | "some_of_them" |
    Then every request is refused

  @SYN-027 @must @spec @spec-2.6
  Scenario: A sync of all properties keeps how names are written
    The names of new fields follow from it, and cannot be changed later.
    Cause: some of the six forms are not known.
    Fix: store and show all six forms, and refuse other words.
    Good: POST /syncs {"field_behavior":"sync_all_properties","field_normalization":"camel_case","…":"…"}, then GET shows it
    Bad: POST /syncs {"field_behavior":"sync_all_properties","field_normalization":"camel_case","…":"…"}, then GET shows snake_case

    Given a destination that makes fields on write
    And syncs that have:
      | field          | value                 |
      | field_behavior | "sync_all_properties" |
    When a client creates a sync with each of these:
      | field               | value                |
      | field_normalization | "start_case"         |
      | field_normalization | "lower_case"         |
      | field_normalization | "upper_case"         |
      | field_normalization | "camel_case"         |
      | field_normalization | "snake_case"         |
      | field_normalization | "match_source_names" |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field               | value        |
      | field_normalization | "kebab_case" |
    Then every request is refused

  @SYN-028 @must @spec @spec-2.6
  Scenario: A sync of all properties maps a new column by itself
    Nobody edits the sync when a column is added; that is what the setting is for.
    Cause: the mappings of the first run are kept.
    Fix: make the mappings anew from the columns of the source before each run.
    Good: a column "city" is added, and the next sync_batch has {"records":[{"id":"r00001","name":"name 1","city":"Graz"}]}
    Bad: a column "city" is added, and the next sync_batch has {"records":[{"id":"r00001","name":"name 1"}]}

    Given a destination that makes fields on write
    And a sync with:
      | field          | value                 |
      | field_behavior | "sync_all_properties" |
    When the sync runs
    And the source then holds
      | id       | name     | city   |
      | "r00001" | "name 1" | "Graz" |
      | "r00002" | "name 2" | "Graz" |
      | "r00003" | "name 3" | "Graz" |
    And the sync runs
    Then every record in the destination has:
      | field | value  |
      | city  | "Graz" |

  @SYN-029 @should @published @spec-2.6
  Scenario: Names of new fields are written in the form that was asked for
    A destination has a convention for its names. Fields in another form are fields beside it.
    Cause: a library splits words in another way.
    Fix: write "beepBoop" as Beep Boop, beep boop, BEEP BOOP, beepBoop, beep_boop, and as it is.
    Good: field_normalization snake_case: the column "beepBoop" goes to the field "beep_boop"
    Bad: field_normalization snake_case: the column "beepBoop" goes to the field "beepboop"

    Given a destination that makes fields on write
    And these rows in the source:
      | id       | beepBoop |
      | "r00001" | "one"    |
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "start_case" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, Beep Boop" in "params.records.*"
    Given a destination that makes fields on write
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "lower_case" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, beep boop" in "params.records.*"
    Given a destination that makes fields on write
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "upper_case" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, BEEP BOOP" in "params.records.*"
    Given a destination that makes fields on write
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "camel_case" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, beepBoop" in "params.records.*"
    Given a destination that makes fields on write
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "snake_case" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, beep_boop" in "params.records.*"
    Given a destination that makes fields on write
    And a sync with:
      | field | value |
      | mappings | [{id_mapping}] |
      | field_behavior | "sync_all_properties" |
      | field_normalization | "match_source_names" |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, beepBoop" in "params.records.*"

  @SYN-030 @must @spec @spec-2.6
  Scenario: A live sync from a stream keeps its family
    Events and records are counted and sent in other ways.
    Cause: the family is derived from the source.
    Fix: store and show activateEvents and mapRecords, and refuse other words.
    Good: POST /syncs {"sync_behavior_family":"activateEvents","mode":{"type":"live"},"…":"…"}, then GET shows it
    Bad: POST /syncs {"sync_behavior_family":"activateEvents","mode":{"type":"live"},"…":"…"}, then GET shows mapRecords

    Given a topic of a streaming source
    When a client creates a sync with each of these:
      | field                | value            |
      | sync_behavior_family | "activateEvents" |
      | sync_behavior_family | "mapRecords"     |
    Then every request is accepted
    And every sync shows what it was given
    When a client creates a sync with each of these:
      | field                | value          |
      | sync_behavior_family | "watchRecords" |
    Then every request is refused

  @SYN-033 @must @spec @spec-2.6
  Scenario: An append sync keeps its high-water mark
    The column tells which rows are new.
    Cause: the column is stored under its deprecated name alone.
    Fix: store and show high_water_mark_attribute.
    Good: POST /syncs {"operation":"append","high_water_mark_attribute":"at","…":"…"}, then GET shows it
    Bad: POST /syncs {"operation":"append","high_water_mark_attribute":"at","…":"…"}, then GET shows null

    Given an object with append
    And these rows in the source:
      | id       | name  | at                     |
      | "r00001" | "one" | "2026-03-04T09:30:00Z" |
      | "r00002" | "two" | "2026-03-05T09:30:00Z" |
    And syncs that have:
      | field     | value    |
      | operation | "append" |
    When a client creates a sync with each of these:
      | field                     | value |
      | high_water_mark_attribute | "at"  |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-034 @must @spec @spec-2.6 @spec-9
  Scenario: The deprecated form of the high-water mark still works
    Deprecated is not gone: older clients send nothing else.
    Cause: the field is no longer read.
    Fix: accept and show high_water_mark_attributes.
    Good: POST /syncs {"operation":"append","high_water_mark_attributes":{"use_high_water_mark_diff_type":true,"column_name":"at"},"…":"…"}, then GET shows it
    Bad: POST /syncs {"operation":"append","high_water_mark_attributes":{"use_high_water_mark_diff_type":true,"column_name":"at"},"…":"…"}, then GET shows null

    Given an object with append
    And these rows in the source:
      | id       | name  | at                     |
      | "r00001" | "one" | "2026-03-04T09:30:00Z" |
      | "r00002" | "two" | "2026-03-05T09:30:00Z" |
    And syncs that have:
      | field     | value    |
      | operation | "append" |
    When a client creates a sync with each of these:
      | field                      | value                                                        |
      | high_water_mark_attributes | {"use_high_water_mark_diff_type": true, "column_name": "at"} |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-035 @must @spec @spec-2.6
  Scenario: A high-water mark tells new records, not the primary key
    Logs are read from where the last run has stopped. Comparing keys would read all of them.
    Cause: the setting is stored and not read.
    Fix: send the rows whose timestamp is above the mark, whatever their keys are.
    Good: a row with a new key and an old timestamp is added: the next run has "records_processed":0
    Bad: a row with a new key and an old timestamp is added: the next run has "records_processed":1

    Given an object with append
    And these rows in the source:
      | id       | name  | at                     |
      | "r00001" | "one" | "2026-03-04T09:30:00Z" |
      | "r00002" | "two" | "2026-03-05T09:30:00Z" |
    And a sync with:
      | field                     | value    |
      | operation                 | "append" |
      | high_water_mark_attribute | "at"     |
    When the sync runs
    And the source then holds
      | id       | name    | at                     |
      | "r00001" | "one"   | "2026-03-04T09:30:00Z" |
      | "r00002" | "two"   | "2026-03-05T09:30:00Z" |
      | "r00003" | "three" | "2026-03-01T09:30:00Z" |
    And the sync runs
    Then the run shows:
      | field             | value       |
      | status            | "completed" |
      | records_processed | 0           |

  @SYN-036 @must @spec @spec-2.6 @spec-8
  Scenario: The deprecated notifications have their defaults
    A client that never heard of them relies on them.
    Cause: fields that were not sent are shown as null.
    Fix: show true, true and 75 where nothing was sent.
    Good: GET /syncs/309 -> {"status":"success","data":{"failed_run_notifications_enabled":true,"failed_record_notifications_enabled":true,"failed_record_notifications_threshold_percent":75,"…":"…"}}
    Bad: GET /syncs/309 -> {"status":"success","data":{"failed_run_notifications_enabled":null,"failed_record_notifications_enabled":false,"failed_record_notifications_threshold_percent":50,"…":"…"}}

    Given a sync
    Then the sync shows:
      | field                                         | value |
      | failed_run_notifications_enabled              | true  |
      | failed_record_notifications_enabled           | true  |
      | failed_record_notifications_threshold_percent | 75    |

  @SYN-038 @must @spec @spec-8
  Scenario: A threshold of failed records is from 0 to 100 percent
    A threshold of 101 percent is never reached: nobody would be told of anything.
    Cause: the number is stored as it comes.
    Fix: refuse failed_record_notifications_threshold_percent below 0 and above 100.
    Good: POST /syncs {"failed_record_notifications_threshold_percent":101,"…":"…"} -> 400 {"status":"error","message":"must be from 0 to 100, not 101"}
    Bad: POST /syncs {"failed_record_notifications_threshold_percent":101,"…":"…"} -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with each of these:
      | field                                         | value |
      | failed_record_notifications_threshold_percent | 101   |
      | failed_record_notifications_threshold_percent | -1    |
    Then every request is refused

  @SYN-039 @must @spec @spec-2.6
  Scenario: Alerts take precedence over the deprecated notifications
    A client that sends both means the alerts; the rest is there for older services.
    Cause: alerts are made from the deprecated fields whenever these are sent.
    Fix: store alert_attributes as they were sent, also where they are empty.
    Good: POST /syncs {"alert_attributes":[],"failed_run_notifications_enabled":true,"…":"…"}, then GET -> {"status":"success","data":{"alert_attributes":[],"…":"…"}}
    Bad: POST /syncs {"alert_attributes":[],"failed_run_notifications_enabled":true,"…":"…"}, then GET -> {"status":"success","data":{"alert_attributes":[{"type":"FailureAlertConfiguration","…":"…"}],"…":"…"}}

    Given syncs that have:
      | field                                         | value |
      | failed_run_notifications_enabled              | true  |
      | failed_record_notifications_enabled           | true  |
      | failed_record_notifications_threshold_percent | 10    |
    When a client creates a sync with each of these:
      | field            | value |
      | alert_attributes | []    |
      | alert_attributes | [{"type": "InvalidRecordPercentAlertConfiguration", "send_for": "every_time", "should_send_recovery": false, "options": {"threshold": 20}}] |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-040 @must @spec @spec-2.6 @spec-2.4
  Scenario: A sync takes the advanced configuration of its object
    What the object defines is what a client may set.
    Cause: values are stored as text.
    Fix: store and show every key of advanced_configuration_field_definitions, with its type.
    Good: POST /syncs {"advanced_configuration":{"header_row":7},"…":"…"}, then GET shows it
    Bad: POST /syncs {"advanced_configuration":{"header_row":7},"…":"…"}, then GET shows {"header_row":"7"}

    Given an object with advanced configuration
    When a client creates a sync with every key of its advanced configuration
    Then every request is accepted
    And every sync shows what it was given

  @SYN-042 @must @spec @spec-2.6 @spec-3
  Scenario: A sync can be paused and woken
    A paused sync that is not shown as one is searched for a long time.
    Cause: false is taken for "not sent".
    Fix: store and show paused, true and false.
    Good: PATCH /syncs/309 {"paused":false,"…":"…"}, then GET -> {"status":"success","data":{"paused":false,"…":"…"}}
    Bad: PATCH /syncs/309 {"paused":false,"…":"…"}, then GET -> {"status":"success","data":{"paused":true,"…":"…"}}

    When a client creates a sync with each of these:
      | field  | value |
      | paused | true  |
    And a client updates the sync with each of these:
      | field  | value |
      | paused | false |
      | paused | true  |
    Then every request is accepted
    And every sync shows what it was given

  @SYN-043 @must @spec @spec-2.6
  Scenario: The update of a sync of an audience tells its match rate
    How many of the people were found is what an audience is judged by.
    Cause: the rate is counted, and not answered.
    Fix: answer match_rate_details with a number and the time of its counting.
    Good: PATCH /syncs/309 -> 200 {"status":"updated","data":{"match_rate_details":{"match_rate":0.7,"match_rate_last_calculated_at":"2026-03-04T09:30:00Z"},"…":"…"}}
    Bad: PATCH /syncs/309 -> 200 {"status":"updated","data":{"match_rate_details":{"match_rate":"70%"},"…":"…"}}

    Given an object with mirror alone
    And a sync with:
      | field     | value    |
      | operation | "mirror" |
    When the sync runs
    And a client updates the sync with:
      | field  | value |
      | paused | true  |
    Then data of each answer has the members:
      | match_rate_details | object |
      | match_rate_details.match_rate | number |
      | match_rate_details.match_rate_last_calculated_at | timestamp |

  @SYN-044 @must @spec @spec-2.6
  Scenario: What only answers have is not taken from a request
    Tools send back what they have read. Old times and a foreign id must not become the sync's.
    Cause: the body is stored as a whole.
    Fix: ignore or refuse id, status, created_at and updated_at in a request.
    Good: POST /syncs {"created_at":"2001-02-03T04:05:06Z","…":"…"}, then GET -> {"status":"success","data":{"created_at":"2026-03-04T09:30:00Z","…":"…"}}
    Bad: POST /syncs {"created_at":"2001-02-03T04:05:06Z","…":"…"}, then GET -> {"status":"success","data":{"created_at":"2001-02-03T04:05:06Z","…":"…"}}

    When a client creates a sync with each of these:
      | field      | value                      |
      | id         | {nobody}                   |
      | status     | "zz-conf"                  |
      | created_at | "2001-02-03T04:05:06.000Z" |
      | updated_at | "2001-02-03T04:05:06.000Z" |
    Then every request is refused, or the sync does not show what was asked for

  @SYN-046 @must @published @spec-4
  Scenario: A deleted sync is gone
    Clean-up scripts wait for it.
    Cause: the sync is hidden in the list alone.
    Fix: answer {"status":"deleted"}, and 404 to every later call.
    Good: DELETE /syncs/309 -> 200 {"status":"deleted"}, then GET /syncs/309 -> 404
    Bad: DELETE /syncs/309 -> 200 {"status":"success"}, then GET /syncs/309 -> 200

    Given a sync
    When a client makes each call with its own token:
      | DELETE /syncs/{sync} |
    Then the status of each answer is one of "deleted"
    When a client makes each call with its own token:
      | GET /syncs/{sync} |
    Then each call is answered with 404

  @SYN-047 @should @published @spec-2.6 @spec-3 @differs-sync-status-case
  Scenario: The status of a sync follows its runs
    The status is what dashboards show: nothing has run, the last run went well, or it failed.
    Cause: the status is set when a sync is made, and never again.
    Fix: show ready, up to date and failing.
    Good: after a run that failed, GET /syncs/309 -> {"status":"success","data":{"status":"failing","…":"…"}}
    Bad: after a run that failed, GET /syncs/309 -> {"status":"success","data":{"status":"ready","…":"…"}}

    Given a sync
    Then the sync shows:
      | field  | value   |
      | status | "ready" |
    When the sync runs
    Then the sync shows:
      | field  | value        |
      | status | "up to date" |
    When the source then holds
      | id       |
      | "r00001" |
    And the sync runs
    Then the sync shows:
      | field  | value     |
      | status | "failing" |
