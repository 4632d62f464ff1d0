Feature: Sync runs
  A run is one execution of a sync: where it stands, how it ended, what it counted.

  @RUN-001 @must @spec @spec-2.9 @spec-2
  Scenario: A run has its numbers, times and flags in their types
    Orchestrators read them to decide whether to go on.
    Cause: values are passed on in the form of the database.
    Fix: answer integers as integers, times as ISO 8601 in UTC, flags as booleans.
    Good: {"id":602,"sync_id":309,"created_at":"2026-03-04T09:30:00Z","status":"completed","canceled":false,"full_sync":true,"…":"…"}
    Bad: {"id":"602","sync_id":"309","created_at":1772616600,"status":"completed","canceled":0,"full_sync":"yes","…":"…"}

    Given a sync
    When the sync runs
    Then data of each answer has the members:
      | id | integer |
      | sync_id | integer |
      | created_at | timestamp |
      | updated_at | timestamp |
      | completed_at | timestamp |
      | scheduled_execution_time | timestamp or null |
      | canceled | boolean |
      | full_sync | boolean |

  @RUN-002 @must @spec @spec-2.9
  Scenario: A completed run has all its counters
    A counter that is missing is zero to one client and unknown to another.
    Cause: counters that are 0 are left out.
    Fix: answer all eight counters of a completed run as integers.
    Good: {"source_record_count":3,"source_record_updates":3,"source_record_deletes":0,"source_record_invalids":0,"records_processed":3,"records_updated":3,"records_failed":0,"records_invalid":0}
    Bad: {"source_record_count":3,"source_record_updates":3,"records_processed":"3","records_updated":3}

    Given a sync
    When the sync runs
    Then data of each answer has the members:
      | source_record_count | integer |
      | source_record_updates | integer |
      | source_record_deletes | integer |
      | source_record_invalids | integer |
      | records_processed | integer |
      | records_updated | integer |
      | records_failed | integer |
      | records_invalid | integer |

  @RUN-003 @must @spec @spec-2.9
  Scenario: A run says why it was started
    A run that nobody has asked for is looked into.
    Cause: the reason is a word of the scheduler.
    Fix: answer sync_trigger_reason with ui_tag and ui_detail as texts.
    Good: {"sync_trigger_reason":{"ui_tag":"Manual","ui_detail":"Manually triggered by test@example.com"}}
    Bad: {"sync_trigger_reason":"manual"}

    Given a sync
    When the sync runs
    Then data of each answer has the members:
      | sync_trigger_reason | object |
      | sync_trigger_reason.ui_tag | text |
      | sync_trigger_reason.ui_detail | text |

  @RUN-004 @must @published @spec-4
  Scenario: Triggering a sync answers with the id of its run
    The id is what an orchestrator asks about until the run is over.
    Cause: the answer is the sync.
    Fix: answer {"status":"success","data":{"sync_run_id":…}} with the id as an integer.
    Good: POST /syncs/309/trigger -> 200 {"status":"success","data":{"sync_run_id":602}}
    Bad: POST /syncs/309/trigger -> 200 {"status":"queued","data":{"sync_run_id":602}}

    Given a sync
    When a client makes each call with its own token:
      | POST /syncs/{sync}/trigger |
    Then the status of each answer is one of "success"
    And data of each answer has the members:
      | sync_run_id | integer |

  @RUN-005 @must @published @spec-4 @spec-2.9
  Scenario: A run is read by its id
    A client has nothing but the id that the trigger has given.
    Cause: runs are known below their sync only.
    Fix: answer {"status":"success","data":{…}} with the run and the id of its sync.
    Good: GET /sync_runs/602 -> 200 {"status":"success","data":{"id":602,"sync_id":309,"…":"…"}}
    Bad: GET /sync_runs/602 -> 200 {"status":"completed","data":{"id":602,"sync_id":1,"…":"…"}}

    Given a sync
    When the sync runs
    Then the status of each answer is one of "success"
    And data of each answer has the values:
      | id | {run} |
      | sync_id | {sync} |

  @RUN-006 @must @published @spec-4
  Scenario: A run that nobody has is not found
    A mistyped id must not look like a run that waits.
    Cause: a missing run is answered as an empty one.
    Fix: answer 404.
    Good: GET /sync_runs/987654321 -> 404 {"status":"not_found","message":"each call is answered with 404"}
    Bad: GET /sync_runs/987654321 -> 200 {"status":"success","data":{}}

    Given a sync
    When a client makes each call with its own token:
      | GET /sync_runs/{nobody} |
    Then each call is answered with 404

  @RUN-007 @must @published @spec-2.9 @spec-3
  Scenario: A run at work says so
    Clients wait as long as a run is queued or working, and stop at every other word.
    Cause: older words are still given.
    Fix: answer the status working.
    Good: GET /sync_runs/602 -> {"status":"success","data":{"status":"working","…":"…"}}
    Bad: GET /sync_runs/602 -> {"status":"success","data":{"status":"preparing","…":"…"}}

    Given the destination holds its batches back
    And a sync
    When a client makes each call with its own token:
      | POST /syncs/{sync}/trigger |
    And a batch of the run is under way
    And a client makes each call with its own token:
      | GET /sync_runs/{run} |
    Then data of each answer has the values:
      | status | "working" |

  @RUN-008 @must @spec @spec-2.9 @spec-3
  Scenario: A run at work tells its step
    Somebody who waits wants to know for what.
    Cause: the step is written when the run is over.
    Fix: answer current_step as a text while the run works.
    Good: {"status":"working","current_step":"Running sync","…":"…"}
    Bad: {"status":"working","current_step":null,"…":"…"}

    Given the destination holds its batches back
    And a sync
    When a client makes each call with its own token:
      | POST /syncs/{sync}/trigger |
    And a batch of the run is under way
    And a client makes each call with its own token:
      | GET /sync_runs/{run} |
    Then data of each answer has the members:
      | current_step | text |

  @RUN-010 @should @published @spec-2.9
  Scenario: A completed run has no step and no error
    A dashboard that finds a message shows it.
    Cause: the step and empty messages stay where they were.
    Fix: answer current_step, error_code, error_message and error_detail as null.
    Good: {"status":"completed","current_step":null,"error_code":null,"error_message":null,"error_detail":null,"…":"…"}
    Bad: {"status":"completed","current_step":"Running sync","error_code":"","error_message":"OK","error_detail":"","…":"…"}

    Given a sync
    When the sync runs
    Then data of each answer has the members:
      | current_step | optional null |
      | error_code | optional null |
      | error_message | optional null |
      | error_detail | optional null |

  @RUN-011 @must @spec @spec-7.1.2 @spec-2.9
  Scenario: A failed run says what has failed
    The three fields are all that a client gets to know of a failure.
    Cause: the error is logged, and not stored with the run.
    Fix: answer error_code, error_message and error_detail as texts.
    Good: {"status":"failed","error_code":"CONFIGURATION","error_message":"the source has no column \"name\"","error_detail":"mappings[1].from.data: …","…":"…"}
    Bad: {"status":"failed","error_code":null,"error_message":"failed","error_detail":null,"…":"…"}

    Given a sync
    When the source then holds
      | id       |
      | "r00001" |
    And the sync runs
    Then the run shows:
      | field  | value    |
      | status | "failed" |
    And data of each answer has the members:
      | error_code | text |
      | error_message | text |
      | error_detail | text |

  @RUN-015 @must @spec @spec-4 @spec-2.9
  Scenario: The list of runs has every run of the sync
    The history of a sync is this list.
    Cause: the list has a shorter form of its own, or the latest run only.
    Fix: answer all runs of the sync, each as it is read by its id.
    Good: GET /syncs/309/sync_runs -> 200 {"status":"success","pagination":{"…":"…"},"data":[{"id":603,"…":"…"},{"id":602,"…":"…"}]}
    Bad: GET /syncs/309/sync_runs -> 200 {"status":"success","pagination":{"…":"…"},"data":[{"id":603}]}

    Given a sync
    When the sync runs
    And the sync runs
    Then the list "/syncs/{sync}/sync_runs" shows both runs as they are read by their ids
