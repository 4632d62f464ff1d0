Feature: Alerts
  What is mailed when a sync needs somebody.

  @ALRT-001 @must @spec @spec-2.8 @spec-6 @clock
  Scenario: A run that fails is told by e-mail
    A sync that fails in silence is found out by whoever misses the data.
    Cause: the alert is stored and nobody looks at it.
    Fix: look at the alerts of the sync when a run ends, and mail.
    Good: the run fails -> an e-mail to the notification_emails of the workspace
    Bad: the run fails -> nothing

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":null}] |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    Then 1 e-mail has come

  @ALRT-002 @must @published @spec-2.8 @clock
  Scenario: With send_for first_time a failure that lasts is told once
    A sync that fails every hour must not fill a mailbox.
    Cause: each failed run is looked at by itself.
    Fix: remember that the alert is open until a run completes.
    Good: two runs fail -> one e-mail
    Bad: two runs fail -> two e-mails

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{}}] |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    And the sync runs
    Then 1 e-mail has come

  @ALRT-003 @must @published @spec-2.8 @clock
  Scenario: With send_for every_time each failure is told
    Who asks for every failure counts on it.
    Cause: every_time is read as first_time.
    Fix: mail for every failed run.
    Good: two runs fail -> two e-mails
    Bad: two runs fail -> one e-mail

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"every_time","should_send_recovery":false,"options":{}}] |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    And the sync runs
    Then 2 e-mails have come

  @ALRT-004 @must @spec @spec-2.8 @spec-6 @clock
  Scenario: A recovery is told where it is asked for
    Somebody may be working on a failure that is over.
    Cause: should_send_recovery is ignored.
    Fix: mail when the first run completes after a failure.
    Good: a run fails, the next completes -> two e-mails
    Bad: a run fails, the next completes -> one e-mail

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"first_time","should_send_recovery":true,"options":{}}] |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    Then 1 e-mail has come
    When the destination is well again
    And the sync runs
    Then 2 e-mails have come

  @ALRT-006 @must @spec @spec-2.8 @spec-6 @clock
  Scenario: Invalid records are told from the threshold on
    Rows without an identifier never arrive, and the run completes all the same.
    Cause: the share is never computed, or compared with another number.
    Fix: compare the share of invalid and refused records with threshold.
    Good: threshold 50, 2 of 4 rows invalid -> an e-mail
    Bad: threshold 50, 2 of 4 rows invalid -> nothing

    Given a workspace whose notices go to 1 address
    And a sync of 4 rows, 2 of them invalid, with:
      | alert_attributes | [{"type":"InvalidRecordPercentAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{"threshold":50}}] |
    When the sync runs
    Then 1 e-mail has come

  @ALRT-009 @must @spec @spec-2.6 @spec-6 @clock
  Scenario: failed_run_notifications_enabled mails a failed run
    The field is deprecated, and clients still set it.
    Cause: only alert_attributes is looked at.
    Fix: treat it as a failure alert where there is no alert_attributes.
    Good: "failed_run_notifications_enabled":true, the run fails -> an e-mail
    Bad: nothing

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | null |
      | failed_run_notifications_enabled | true |
      | failed_record_notifications_enabled | false |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    Then 1 e-mail has come

  @ALRT-011 @must @spec @spec-2.6 @spec-8 @clock
  Scenario: failed_record_notifications_threshold_percent is 75 where nothing is said
    A default that differs mails too much or too little.
    Cause: another default, or none.
    Fix: use 75.
    Good: 2 of 4 rows invalid -> nothing; then 6 of 8 -> an e-mail
    Bad: 2 of 4 rows invalid -> an e-mail

    Given a workspace whose notices go to 1 address
    And a sync of 4 rows, 2 of them invalid, with:
      | alert_attributes | null |
      | failed_run_notifications_enabled | false |
      | failed_record_notifications_enabled | true |
    When the sync runs
    Then no e-mail has come
    When the source has 8 rows, 6 of them invalid
    And the sync runs
    Then 1 e-mail has come

  @ALRT-012 @must @spec @spec-2.6 @clock
  Scenario: alert_attributes takes precedence over the deprecated fields
    A client that knows both writes both, and means the new one.
    Cause: both are looked at.
    Fix: ignore the deprecated fields where alert_attributes is there.
    Good: alert_attributes without a failure alert, "failed_run_notifications_enabled":true, the run fails -> nothing
    Bad: an e-mail

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"InvalidRecordPercentAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{"threshold":100}}] |
      | failed_run_notifications_enabled | true |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    Then no e-mail has come

  @ALRT-013 @must @spec @spec-2.14 @spec-6 @clock
  Scenario: Every notification address of the workspace gets the e-mail
    The addresses are where the team looks.
    Cause: only the first address is used.
    Fix: mail to all of notification_emails.
    Good: two addresses -> two e-mails
    Bad: one e-mail

    Given a workspace whose notices go to 2 addresses
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{}}] |
    And the destination answers every "get_sync_speed" with an error object
    When the sync runs
    Then 1 e-mail has come

  @ALRT-014 @must @published @spec-2.8 @clock
  Scenario: A StatusAlertConfiguration tells of runs that complete
    Some data is waited for.
    Cause: the type is stored and never looked at.
    Fix: mail when the run reaches status_name.
    Good: status_name completed, the run completes -> an e-mail
    Bad: nothing

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"StatusAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{"status_name":"completed"}}] |
    When the sync runs
    Then 1 e-mail has come

  @ALRT-015 @must @published @spec-2.8 @clock
  Scenario: A FullSyncTriggerAlertConfiguration tells of full syncs
    A full sync sends everything again, which may cost money.
    Cause: the type is stored and never looked at.
    Fix: mail when a run is a full sync.
    Good: the sync runs with force_full_sync -> an e-mail
    Bad: nothing

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FullSyncTriggerAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{}}] |
    When the sync runs
    And the sync runs with force_full_sync in the query
    Then 1 e-mail has come

  @ALRT-016 @must @published @spec-2.8 @clock
  Scenario: A RecordCountDeviationAlertConfiguration tells of counts that jump
    A source that has lost most of its rows looks like a quiet day.
    Cause: the type is stored and never looked at.
    Fix: compare the count with the mean of the runs before.
    Good: 2 rows, then 10 rows, threshold 50 -> an e-mail
    Bad: nothing

    Given a workspace whose notices go to 1 address
    And a sync of 2 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"RecordCountDeviationAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{"threshold":50,"record_type":"source_record_count"}}] |
    When the sync runs
    Then no e-mail has come
    When the source has 10 rows, 0 of them invalid
    And the sync runs
    Then 1 e-mail has come

  @ALRT-017 @must @spec @spec-2.8 @spec-6 @clock
  Scenario: A run without trouble is not told
    An alert that always comes says nothing.
    Cause: the end of each run is mailed.
    Fix: mail only what an alert asks for.
    Good: the run completes -> nothing
    Bad: an e-mail

    Given a workspace whose notices go to 1 address
    And a sync of 4 rows, 0 of them invalid, with:
      | alert_attributes | [{"type":"FailureAlertConfiguration","send_for":"every_time","should_send_recovery":true,"options":{}},{"type":"InvalidRecordPercentAlertConfiguration","send_for":"first_time","should_send_recovery":false,"options":{"threshold":1}}] |
    When the sync runs
    Then no e-mail has come
