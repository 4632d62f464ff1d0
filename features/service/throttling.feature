Feature: Throttling
  A destination that has had enough for now answers 429, and says in Retry-After when it can go on.

  @THR-001 @must @published @spec-8 @clock
  Scenario: After 429 the connection rests for the seconds of Retry-After
    A destination that is called again at once only gets further behind, and often extends its ban.
    Cause: Retry-After is not read, and the ordinary backoff of a second is used.
    Fix: send nothing before the seconds of Retry-After are over.
    Good: 429 with Retry-After: 30, and the batch again after 30 seconds
    Bad: 429 with Retry-After: 30, and the batch again after one second

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "30"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 29 seconds after status 429
    And every record of the source is in the destination

  @THR-002 @must @published @spec-8 @clock
  Scenario: Retry-After may be a date
    HTTP knows two forms of Retry-After. Gateways that count in windows name the end of the window.
    Cause: only a number is read.
    Fix: read a date of HTTP too, and send nothing before it.
    Good: 429 with Retry-After: Wed, 04 Mar 2026 09:30:30 GMT at 09:30:00, and the batch again at 09:30:30
    Bad: 429 with Retry-After: Wed, 04 Mar 2026 09:30:30 GMT at 09:30:00, and the batch again at 09:30:01

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "a date in 30s"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 28 seconds after status 429
    And every record of the source is in the destination

  @THR-003 @should @policy @spec-8 @clock
  Scenario: 429 without Retry-After brings a wait that the service chooses
    The header is optional. To go on at once would be more of what the destination complains about;
    to wait for long would delay a run for no reason.
    Cause: a missing header counts as a wait of nothing.
    Fix: wait for a second or so, and for longer from time to time.
    Good: 429, and the batch again after a second
    Bad: 429, and the batch again in the same moment

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And the destination notes the time of every call
    And calls 1 to 2 of sync_batch are answered with status 429
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 500 ms after status 429
    And a call of the sync comes within 300 seconds after status 429
    And every record of the source is in the destination

  @THR-008 @should @policy @spec-8 @clock
  Scenario: 429 costs no attempt, and no record fails by it
    Nothing was said about the records. However often the destination says that it has had enough,
    they are only late.
    Cause: 429 is counted among the failures of the batch.
    Fix: count the attempts of a batch without those that were answered with 429.
    Good: 429 sixteen times, then 200, and "records_failed":0
    Bad: 429 sixteen times, and "records_failed":3

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And calls 1 to 16 of sync_batch are answered with status 429 and Retry-After "1"
    And a sync of 1 records with operation "upsert"
    When the sync runs
    Then every run completes
    And run 1 shows:
      | field | value |
      | records_updated | 1 |
      | records_failed  | 0 |
    And every record of the source is in the destination

  @THR-010 @must @published @spec-8 @clock
  Scenario: 429 to get_sync_speed is waited for
    Retry-After counts for any call, and the first one of a run most often meets the end of somebody
    else's burst.
    Cause: only batches have the patience.
    Fix: treat 429 alike for all methods.
    Good: get_sync_speed, 429 with Retry-After: 30, and get_sync_speed again after 30 seconds
    Bad: get_sync_speed, 429 with Retry-After: 30, and the run has failed

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And the destination notes the time of every call
    And call 1 of get_sync_speed is answered with status 429 and Retry-After "30"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 29 seconds after status 429
    And every record of the source is in the destination
