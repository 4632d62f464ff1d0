Feature: Timeouts
  A request that takes too long is given up. How long is too long is not shown.

  @TOUT-001 @must @spec @spec-8
  Scenario: A batch that is not answered is given up
    A destination that hangs must not hold the run for ever.
    Cause: requests are made without a deadline.
    Fix: give every request a deadline.
    Good: sync_batch, no answer for a minute, and the connection is closed
    Bad: sync_batch, no answer for an hour, and the run is still "working"

    Given a destination
    And the first call of sync_batch is not answered
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then the service gives the first call of sync_batch up

  @TOUT-002 @must @spec @spec-8 @spec-7.2.5 @needs-TOUT-001
  Scenario: A batch that was given up is sent again
    Nobody knows what became of it. Only a success of the destination's own counts.
    Cause: a timeout counts as done, or the records are forgotten.
    Fix: send the records again.
    Good: sync_batch, no answer for a minute, and sync_batch with the same records
    Bad: sync_batch, no answer for a minute, and the run is completed

    Given a destination
    And the first call of sync_batch is not answered
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then the records of the first batch are sent again
    And every record of the source is in the destination

  @TOUT-003 @must @spec @spec-8
  Scenario: An answer that does not end is given up
    A proxy sends headers at once and the rest when it comes. A request is slow also when only its
    end is missing.
    Cause: the deadline ends with the first byte of the answer.
    Fix: let the deadline count until the answer was read.
    Good: 200, half a body, nothing for a minute, and the connection is closed
    Bad: 200, half a body, and the run is still "working" an hour later

    Given a destination
    And the first call of sync_batch is carried out, and answered only by half
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then the service gives the first call of sync_batch up

  @TOUT-005 @must @spec @spec-8
  Scenario: A slow get_sync_speed is given up
    The run has not even begun, and would never.
    Cause: only batches have a deadline.
    Fix: give every request a deadline.
    Good: get_sync_speed, no answer for half a minute, and get_sync_speed again
    Bad: get_sync_speed, no answer for an hour, and the run is still "working"

    Given a destination
    And the first call of get_sync_speed is not answered
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then the service gives the first call of get_sync_speed up

  @TOUT-006 @must @spec @spec-8
  Scenario: A slow test_connection is given up, and has failed
    Somebody waits for the result of the test.
    Cause: the test has no deadline, or a test without an answer counts as passed.
    Fix: give the test a deadline, and show its step as failed.
    Good: POST /destinations -> 201 {"status":"created","data":{"last_test_succeeded":false,"…":"…"}}
    Bad: POST /destinations -> no answer

    When a client connects a destination that does not answer test_connection
    Then the service gives the first call of test_connection up
    And the connection test has failed
