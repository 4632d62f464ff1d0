Feature: Modes and alert settings
  When a sync runs, and whom it tells of what, as stored and read back.

  @MOD-001 @must @spec @spec-2.6
  Scenario: A daily schedule is kept with its hour and minute
    A sync that runs at another hour meets data that is not there yet.
    Cause: the time is stored as text, or in another zone.
    Fix: store and show mode with type and triggers.schedule with frequency, hour and minute.
    Good: {"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"daily","hour":5,"minute":15}}}}
    Bad: {"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"daily","hour":"5"}}}}

    When a client creates a sync with each of these:
      | field | value |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "daily", "hour": 5, "minute": 15}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "daily", "hour": 0, "minute": 0}}}  |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-002 @must @published @spec-2.6
  Scenario: Every published frequency is kept
    Clients offer all of them to their users.
    Cause: frequencies are folded into those that the scheduler has.
    Fix: store and show never, continuous, quarter_hourly, hourly, daily, weekly and expression.
    Good: {"frequency":"quarter_hourly"}, then GET shows it
    Bad: {"frequency":"quarter_hourly"}, then GET shows {"frequency":"hourly"}

    Given syncs that have:
      | field  | value |
      | paused | true  |
    When a client creates a sync with each of these:
      | field | value |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "never"}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "continuous"}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "quarter_hourly"}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "hourly", "minute": 20}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "weekly", "day": "Tuesday", "hour": 6, "minute": 30}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "expression", "cron_expression": "10 4 1,15 * *"}}} |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-003 @should @published @spec-2.6
  Scenario: An unknown mode or frequency is refused
    A misspelt schedule is one that never runs.
    Cause: an unknown word falls back to never.
    Fix: refuse words that are not known.
    Good: {"frequency":"dayly"} -> 400 {"status":"error","message":"unknown value \"dayly\""}
    Bad: {"frequency":"dayly"} -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with each of these:
      | field | value |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "dayly"}}} |
      | mode  | {"type": "sometimes"} |
    Then every request is refused

  @MOD-006 @must @published @spec-2.6
  Scenario: Several triggers stand together
    A sync runs daily, and also when the sync before it is done.
    Cause: only one trigger is stored.
    Fix: store and show schedule, dbt_cloud, fivetran and sync_sequence side by side.
    Good: {"triggers":{"schedule":{"frequency":"daily","…":"…"},"sync_sequence":{"sync_id":309}}}
    Bad: {"triggers":{"schedule":{"frequency":"daily","…":"…"}}}

    Given a sync
    When a client creates a sync with:
      | field         | value |
      | mode.triggers | {"schedule": {"frequency": "daily", "hour": 8, "minute": 15}, "dbt_cloud": {"project_id": "11", "job_id": "22"}, "fivetran": {"job_id": "33", "job_name": "load"}, "sync_sequence": {"sync_id": {first_sync}}} |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-007 @should @published @spec-2.6
  Scenario: A schedule is shown also where there is none
    Clients read the frequency without a look whether there is a schedule.
    Cause: what was not sent is left out.
    Fix: show the schedule with the frequency never.
    Good: {"triggers":{"schedule":{"frequency":"never"},"sync_sequence":{"sync_id":309}}}
    Bad: {"triggers":{"sync_sequence":{"sync_id":309}}}

    Given a sync
    When a client creates a sync with:
      | field | value |
      | mode  | {"type": "triggered", "triggers": {"sync_sequence": {"sync_id": {first_sync}}}} |
    Then the sync shows:
      | field                            | value   |
      | mode.triggers.schedule.frequency | "never" |

  @MOD-008 @must @spec @spec-2.6 @spec-4.1.1
  Scenario: An update changes the mode
    The old schedule must end with the update, and the new one begin.
    Cause: the mode is read when a sync is made, and not when it is changed.
    Fix: store the mode of the update.
    Good: PATCH {"mode":{"…":{"schedule":{"frequency":"daily","hour":7,"minute":45}}}}, then GET shows it
    Bad: PATCH {"mode":{"…":{"schedule":{"frequency":"daily","hour":7,"minute":45}}}}, then GET shows never

    Given a sync
    When a client updates the sync with each of these:
      | field | value |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "daily", "hour": 7, "minute": 45}}} |
      | mode  | {"type": "triggered", "triggers": {"schedule": {"frequency": "never"}}} |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-009 @should @published @spec-2.6
  Scenario: Only a streaming source can be read live
    A table does not tell when it changes.
    Cause: the mode is stored without a look at the source.
    Fix: refuse mode.type live unless the source streams.
    Good: {"mode":{"type":"live"}} from a dataset -> 400 {"status":"error","message":"live needs a streaming source"}
    Bad: {"mode":{"type":"live"}} from a dataset -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with:
      | field | value            |
      | mode  | {"type": "live"} |
    Then every request is refused

  @MOD-010 @should @published @spec-2.6
  Scenario: The older form of the schedule still works
    Clients that are older than mode send the schedule in fields of the sync.
    Cause: the older fields are no longer read.
    Fix: read schedule_frequency, schedule_hour and schedule_minute where there is no mode.
    Good: POST {"schedule_frequency":"daily","schedule_hour":5,"schedule_minute":15}, then GET shows mode with that schedule
    Bad: POST {"schedule_frequency":"daily","schedule_hour":5,"schedule_minute":15}, then GET shows mode with never

    Given syncs that have:
      | field              | value   |
      | mode               | nothing |
      | schedule_frequency | "daily" |
      | schedule_hour      | 9       |
    When a client creates a sync with:
      | field           | value |
      | schedule_minute | 17    |
    Then every request is accepted
    And the sync shows:
      | field                            | value       |
      | mode.type                        | "triggered" |
      | mode.triggers.schedule.frequency | "daily"     |
      | mode.triggers.schedule.hour      | 9           |
      | mode.triggers.schedule.minute    | 17          |

  @MOD-012 @must @spec @spec-2.8
  Scenario: An alert is kept as it was written
    An alert that is sent once in place of each time is missed.
    Cause: fields of alerts are filled with defaults.
    Fix: store and show type, send_for, should_send_recovery and options.
    Good: {"type":"InvalidRecordPercentAlertConfiguration","send_for":"every_time","should_send_recovery":false,"options":{"threshold":30}}
    Bad: {"type":"InvalidRecordPercentAlertConfiguration","send_for":"first_time","should_send_recovery":true,"options":{"threshold":"30"}}

    When a client creates a sync with each of these:
      | field            | value |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "first_time", "should_send_recovery": true, "options": null}] |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": false, "options": null}, {"type": "InvalidRecordPercentAlertConfiguration", "send_for": "first_time", "should_send_recovery": false, "options": {"threshold": 30}}] |
      | alert_attributes | [{"type": "InvalidRecordPercentAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": {"threshold": 0}}] |
      | alert_attributes | [{"type": "InvalidRecordPercentAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": {"threshold": 100}}] |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-013 @must @published @spec-2.8
  Scenario: A sync that names no alerts has two
    Nobody who is silent about alerts wants to miss a failure.
    Cause: what was not sent is taken for none.
    Fix: add an alert for failed runs, and one for 75 percent of failed and invalid records.
    Good: POST without alert_attributes, then GET shows two alerts
    Bad: POST without alert_attributes, then GET -> {"status":"success","data":{"alert_attributes":[],"…":"…"}}

    When a client creates a sync with:
      | field            | value   |
      | alert_attributes | nothing |
    Then the sync shows:
      | field            | value |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "first_time", "should_send_recovery": true}, {"type": "InvalidRecordPercentAlertConfiguration", "send_for": "first_time", "should_send_recovery": true, "options": {"threshold": 75}}] |

  @MOD-014 @should @published @spec-2.8
  Scenario: A sync without alerts can be had
    An empty list is a decision.
    Cause: an empty list is taken for none sent.
    Fix: store and show the empty list.
    Good: POST {"alert_attributes":[],"…":"…"}, then GET -> {"status":"success","data":{"alert_attributes":[],"…":"…"}}
    Bad: POST {"alert_attributes":[],"…":"…"}, then GET shows two alerts

    When a client creates a sync with:
      | field            | value |
      | alert_attributes | []    |
    Then every sync shows what it was given

  @MOD-016 @must @spec @spec-2.8 @spec-4.1.1
  Scenario: An update replaces the alerts
    The list in the update is the list of the sync.
    Cause: the alerts are read when a sync is made, and not when it is changed.
    Fix: store the list of the update.
    Good: PATCH {"alert_attributes":[{"type":"InvalidRecordPercentAlertConfiguration","…":"…"}],"…":"…"}, then GET shows that one
    Bad: PATCH {"alert_attributes":[{"type":"InvalidRecordPercentAlertConfiguration","…":"…"}],"…":"…"}, then GET shows the old one

    Given a sync
    When a client updates the sync with each of these:
      | field            | value |
      | alert_attributes | [{"type": "InvalidRecordPercentAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": {"threshold": 40}}] |
      | alert_attributes | [] |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-017 @should @published @spec-2.8
  Scenario: An alert has an id that outlives updates
    Clients send the ids of the alerts that stay; without them every update makes new ones.
    Cause: alerts are stored as a list without ids.
    Fix: give each alert an integer id, and keep it where an update names it.
    Good: {"id":1,"type":"FailureAlertConfiguration","…":"…"}, and after an update with id 1 the same
    Bad: {"type":"FailureAlertConfiguration","…":"…"}

    Given a sync with:
      | field            | value |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "first_time", "should_send_recovery": true, "options": null}] |
    When a client makes each call with its own token:
      | GET /syncs/{sync} |
    Then data of each answer has the members:
      | alert_attributes.0.id | integer |
    When a client updates the sync with:
      | field            | value |
      | alert_attributes | [{"id": {alert}, "type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": null}] |
    Then every request is accepted
    And every sync shows what it was given

  @MOD-019 @should @published @spec-2.8
  Scenario: The other published types of alerts are kept
    Users watch full syncs, run times and starts with them.
    Cause: only the two types of the defaults are known.
    Fix: store and show FullSyncTrigger, Runtime and Status alerts with their options.
    Good: {"type":"RuntimeAlertConfiguration","options":{"threshold":30,"unit":"minutes","start_type":"actual"}}
    Bad: {"type":"RuntimeAlertConfiguration","options":{"threshold":30,"unit":"minutes","start_type":"actual"}} -> 400

    When a client creates a sync with each of these:
      | field            | value |
      | alert_attributes | [{"type": "FullSyncTriggerAlertConfiguration", "send_for": "every_time", "should_send_recovery": false, "options": null}] |
      | alert_attributes | [{"type": "RuntimeAlertConfiguration", "send_for": "every_time", "should_send_recovery": false, "options": {"threshold": 30, "unit": "minutes", "start_type": "actual"}}] |
      | alert_attributes | [{"type": "StatusAlertConfiguration", "send_for": "every_time", "should_send_recovery": false, "options": {"status_name": "completed"}}] |
    Then every request is accepted
    And every sync shows what it was given
