Feature: Throttling
  A destination that has had enough for now answers 429, and says in Retry-After when it can go on.

  @THR-001 @must @published @spec-8 @clock
  Scenario: After 429 the connection rests for the seconds of Retry-After
    A destination that is called again at once only gets further behind, and often extends its ban.
    Cause: Retry-After is not read, and the ordinary backoff of a second is used.
    Fix: send nothing before the seconds of Retry-After are over.
    Good: 429 with Retry-After: 30, and the batch again after 30 seconds
    Bad: 429 with Retry-After: 30, and the batch again after one second

    Given a destination for single records, 1 at once
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

    Given a destination for single records, 1 at once
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

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And calls 1 to 2 of sync_batch are answered with status 429
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 500 ms after status 429
    And a call of the sync comes within 300 seconds after status 429
    And every record of the source is in the destination

  @THR-004 @should @policy @spec-8 @clock
  Scenario: A Retry-After that cannot be read counts as none
    It is the destination's mistake, and still a 429: it has had enough.
    Cause: what cannot be read becomes zero, or an error that ends the run.
    Fix: wait as after a 429 without the header.
    Good: 429 with Retry-After: soon, and the batch again after a second
    Bad: 429 with Retry-After: soon, and the batch again in the same moment

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And calls 1 to 2 of sync_batch are answered with status 429 and Retry-After "soon"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 500 ms after status 429
    And a call of the sync comes within 300 seconds after status 429
    And every record of the source is in the destination

  @THR-005 @should @policy @spec-8 @clock
  Scenario: A Retry-After of a year does not park the run
    A number in milliseconds, or of another planet, must not stop a sync until somebody wonders.
    Cause: the value is believed without a bound.
    Fix: wait for a bounded time, and ask again.
    Good: 429 with Retry-After: 31536000, and the batch again within the hour
    Bad: 429 with Retry-After: 31536000, and nothing more

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "31536000"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then a call of the sync comes within 3600 seconds after status 429
    And every record of the source is in the destination

  @THR-006 @should @policy @spec-8 @clock @needs-THR-001
  Scenario: After 429 the other syncs of the connection rest too
    It is the endpoint that has had enough, not the batch: another sync would only be refused as well.
    Cause: only the batch that was refused waits.
    Fix: let the connection rest.
    Good: 429 with Retry-After: 30 to one sync, and another sync begins after 30 seconds
    Bad: 429 with Retry-After: 30 to one sync, and another sync begins at once

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "30"
    And a sync of 2 records with operation "upsert"
    And a sync of 2 records with operation "upsert"
    When each sync starts when status 429 was answered to the first
    Then no call of the latest sync comes within 29 seconds after status 429
    And every run completes

  @THR-007 @should @policy @spec-8 @clock
  Scenario: 429 of one destination does not hold another
    Another endpoint has nothing to do with it.
    Cause: the pause belongs to the workspace, or to the worker that got the 429.
    Fix: let the one connection rest.
    Good: 429 with Retry-After: 50 of one destination, and batches to another at once
    Bad: 429 with Retry-After: 50 of one destination, and batches to another after 50 seconds

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "50"
    And a sync of 2 records with operation "upsert"
    And another destination whose URL ends in "/beside"
    And the destination notes the time of every call
    And a sync of 2 records with operation "upsert"
    When each sync starts when status 429 was answered to the first
    Then a call of the latest sync comes within 30 seconds after status 429
    And every run completes

  @THR-008 @should @policy @spec-8 @clock
  Scenario: 429 costs no attempt, and no record fails by it
    Nothing was said about the records. However often the destination says that it has had enough,
    they are only late.
    Cause: 429 is counted among the failures of the batch.
    Fix: count the attempts of a batch without those that were answered with 429.
    Good: 429 sixteen times, then 200, and "records_failed":0
    Bad: 429 sixteen times, and "records_failed":3

    Given a destination for single records, 1 at once
    And calls 1 to 16 of sync_batch are answered with status 429 and Retry-After "1"
    And a sync of 1 records with operation "upsert"
    When the sync runs
    Then every run completes
    And run 1 counts
      | records_updated | 1 |
      | records_failed  | 0 |
    And every record of the source is in the destination

  @THR-009 @should @policy @spec-8 @clock
  Scenario: A batch that met 429 is sent again as it was
    Batches are split to find the record at fault. After a 429 there is none, and halves only make
    more requests.
    Cause: 429 is counted among the failures of the batch.
    Fix: send the same batch again after the rest.
    Good: 8 records, 429 four times, and 8 records again
    Bad: 8 records, 429 four times, and then 4 records

    Given a destination that takes 8 records in a batch, 1 batch at once and 100000 records per second
    And calls 1 to 4 of sync_batch are answered with status 429 and Retry-After "2"
    And a sync of 8 records with operation "upsert"
    When the sync runs
    Then every batch has 8 records
    And every record of the source is in the destination

  @THR-010 @must @published @spec-8 @clock
  Scenario: 429 to get_sync_speed is waited for
    Retry-After counts for any call, and the first one of a run most often meets the end of somebody
    else's burst.
    Cause: only batches have the patience.
    Fix: treat 429 alike for all methods.
    Good: get_sync_speed, 429 with Retry-After: 30, and get_sync_speed again after 30 seconds
    Bad: get_sync_speed, 429 with Retry-After: 30, and the run has failed

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And call 1 of get_sync_speed is answered with status 429 and Retry-After "30"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 29 seconds after status 429
    And every record of the source is in the destination

  @THR-011 @should @policy @spec-8 @clock
  Scenario: 503 with Retry-After is waited for
    A destination under maintenance says when it is back. Until then every attempt is lost.
    Cause: Retry-After is read with 429 only.
    Fix: wait for Retry-After before a batch is sent again, whatever the status was.
    Good: 503 with Retry-After: 30, and the batch again after 30 seconds
    Bad: 503 with Retry-After: 30, and the batch again after a second

    Given a destination
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 503 and Retry-After "30"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the sync comes within 29 seconds after status 503
    And every record of the source is in the destination

  @THR-012 @should @policy @spec-8 @clock
  Scenario: Retry-After 0 brings no long wait
    The destination says that it can go on now.
    Cause: zero counts as a header that is missing, and the longest wait is used.
    Fix: go on within a moment.
    Good: 429 with Retry-After: 0, and the batch again within a second
    Bad: 429 with Retry-After: 0, and the batch again after a minute

    Given a destination for single records, 1 at once
    And the destination notes the time of every call
    And call 1 of sync_batch is answered with status 429 and Retry-After "0"
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then a call of the sync comes within 10 seconds after status 429
    And every record of the source is in the destination
