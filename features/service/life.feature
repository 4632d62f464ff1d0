Feature: Life of a sync
  Schedules, pauses, sequences, and how runs end.

  @LIFE-001 @must @published @spec-2.6 @clock
  Scenario: An hourly schedule runs at its minute
    Somebody plans other work by the minute.
    Cause: the hour is counted from the last change of the sync.
    Fix: run at minute of every hour, in UTC.
    Good: minute 30 -> 09:30
    Bad: 09:17

    Given a sync that runs "hourly" and is due in 2 minutes
    When 5m pass
    Then the sync has run 1 time
    And each run was due at the time of its schedule

  @LIFE-002 @must @spec @spec-2.6 @clock
  Scenario: A daily schedule runs at its hour and minute
    The specification shows exactly this schedule.
    Cause: hour is read in the time zone of the machine.
    Fix: run at hour and minute in UTC.
    Good: hour 9, minute 30 -> 09:30Z
    Bad: 11:30Z

    Given a sync that runs "daily" and is due in 2 minutes
    When 5m pass
    Then the sync has run 1 time
    And each run was due at the time of its schedule

  @LIFE-003 @must @published @spec-2.6 @clock
  Scenario: A weekly schedule runs on its day
    A weekly report that comes on another day is late.
    Cause: day is ignored.
    Fix: run on day at hour and minute in UTC.
    Good: day Monday -> every Monday
    Bad: day Monday -> every Tuesday

    Given a sync that runs "weekly" and is due in 2 minutes
    When 5m pass
    Then the sync has run 1 time
    And each run was due at the time of its schedule

  @LIFE-004 @must @published @spec-2.6 @clock
  Scenario: A cron expression runs when it says
    Schedules that no frequency has are written as expressions.
    Cause: the expression is stored and not parsed.
    Fix: read five fields in UTC.
    Good: 30 9 * * * -> 09:30Z
    Bad: never

    Given a sync that runs "expression" and is due in 2 minutes
    When 5m pass
    Then the sync has run 1 time
    And each run was due at the time of its schedule

  @LIFE-005 @must @published @spec-2.6 @clock
  Scenario: A schedule that says quarter_hourly runs four times an hour
    Four times an hour is what was paid for.
    Cause: the frequency is rounded to the hour.
    Fix: run every 15 minutes.
    Good: four runs in an hour
    Bad: one run in an hour

    Given a sync that runs "quarter_hourly" and is due in 2 minutes
    When 1h pass
    Then the sync has run 4 times

  @LIFE-007 @must @published @spec-2.6 @clock
  Scenario: A sync whose frequency is never does not run by itself
    It is triggered by somebody else.
    Cause: never is read as missing, and the default runs.
    Fix: start no run.
    Good: no run in a day
    Bad: a run

    Given a sync that runs "never" and is due in 2 minutes
    When 24h pass
    Then the sync has run 0 times

  @LIFE-008 @must @spec @spec-2.6 @spec-3 @clock
  Scenario: A paused sync does not run by its schedule
    It was paused because its runs do harm.
    Cause: the schedule does not look at paused.
    Fix: start no scheduled run while paused is true.
    Good: "paused":true -> no run at 09:30
    Bad: a run at 09:30

    Given a sync that runs "hourly" and is due in 2 minutes
    When a client pauses the sync
    And 5m pass
    Then the sync has run 0 times

  @LIFE-010 @must @published @spec-2.6 @clock
  Scenario: A sync of a sequence runs when the one before has completed
    The second builds on what the first has written.
    Cause: the trigger is stored and never looked at.
    Fix: start a run when a run of the parent completes.
    Good: the first completes -> the second runs
    Bad: nothing

    Given a sync of 2 records with operation "upsert"
    And another sync that runs after it
    When the first sync runs
    Then the sync has run 1 time

  @LIFE-012 @must @spec @spec-2.9 @clock
  Scenario: A scheduled run says that the schedule started it
    Whoever asks why a sync ran looks here.
    Cause: the reason is a constant.
    Fix: fill sync_trigger_reason by what started the run.
    Good: {"ui_tag":"Schedule", …} and {"ui_tag":"Manual", …}
    Bad: {"ui_tag":"Manual", …} for both

    Given a sync that runs "hourly" and is due in 2 minutes
    When 5m pass
    Then each run says that the schedule started it

  @LIFE-013 @must @published @spec-2.9
  Scenario: A run is skipped while an earlier one of the same sync works
    Two runs of one sync would send the same records side by side.
    Cause: runs do not know of each other.
    Fix: end the second run as skipped.
    Good: the second run -> "status":"skipped"
    Bad: both run

    Given a run that waits for the destination
    When a client triggers the sync once more
    Then the second run ends skipped
    And the first run is working
    When the destination answers again
    Then the first run ends completed

  @LIFE-014 @must @spec @spec-2.9 @spec-3
  Scenario: A run that is cancelled ends, and says so
    Somebody stops a run because it does harm.
    Cause: canceled is never set.
    Fix: end the run and set canceled.
    Good: "canceled":true
    Bad: "canceled":false

    Given a run that waits for the destination
    When a client cancels the run
    And the destination answers again
    Then the first run ends canceled

  @LIFE-015 @must @published @spec-3
  Scenario: A run that is cancelled sends nothing more
    What is stopped must stop.
    Cause: only the status changes.
    Fix: start no further batch after the cancel.
    Good: no batch after the cancel
    Bad: the run goes on to its end

    Given a run that waits for the destination
    When a client cancels the run
    Then the destination gets no further batch
