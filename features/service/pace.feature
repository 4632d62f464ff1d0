Feature: Speed and limits
  A destination says how fast one sync may send, and how often its connection may be called at all.

  @PACE-001 @must @published @spec-4.2
  Scenario: Every run asks for the speed before its first batch
    A destination names the speed that it can bear now. An old answer may be far too fast.
    Cause: get_sync_speed is called when the sync is made, or once in the life of the service.
    Fix: call get_sync_speed at the beginning of every run.
    Good: run 1: get_sync_speed, sync_batch; run 2: get_sync_speed, sync_batch
    Bad: run 1: get_sync_speed, sync_batch; run 2: sync_batch

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    And the source then holds
      | id   | name  |
      | "x1" | "Xia" |
    And the sync runs
    Then every run asks get_sync_speed before its first batch

  @PACE-002 @must @published @spec-4.2
  Scenario: A batch is never larger than maximum_batch_size
    A destination hands a batch on to a system with a limit of its own. A larger one is refused as
    a whole.
    Cause: the size of batches is a constant, or the size is counted before records are added.
    Fix: close a batch when it holds maximum_batch_size records.
    Good: {"maximum_batch_size":7,"…":"…"}, and then batches of 7, 7 and 6 records
    Bad: {"maximum_batch_size":7,"…":"…"}, and then a batch of 20 records

    Given a destination that takes 7 records in a batch, 4 batches at once and 100000 records per second
    And a sync of 20 records with operation "upsert"
    When the sync runs
    Then no batch has more than 7 records
    And every record of the source is in the destination

  @PACE-003 @must @published @spec-4.2
  Scenario: No more batches are under way than maximum_parallel_batches
    Every batch takes a connection and a worker of the destination; it says how many it has.
    Cause: a batch gives its place back when it is sent instead of when it is answered.
    Fix: start another batch when one was answered.
    Good: {"maximum_parallel_batches":2,"…":"…"}, and a third batch comes after the first answer
    Bad: {"maximum_parallel_batches":2,"…":"…"}, and three batches are under way

    Given a destination that takes 1 record in a batch, 2 batches at once and 100000 records per second
    And each batch takes 20 ms
    And a sync of 10 records with operation "upsert"
    When the sync runs
    Then at most 2 batches are under way at once
    And every record of the source is in the destination

  @PACE-004 @must @published @spec-4.2
  Scenario: Never more than 50 batches of a sync are under way
    The service caps maximum_parallel_batches at 50 without a word; who declares more must not get
    more, and must not see the run fail.
    Cause: the number of the destination is taken as it is.
    Fix: take 50 where maximum_parallel_batches is above it.
    Good: {"maximum_parallel_batches":80,"…":"…"}, and 50 batches under way
    Bad: {"maximum_parallel_batches":80,"…":"…"}, and 80 batches under way

    Given a destination that takes 1 record in a batch, 80 batches at once and 100000 records per second
    And no batch is answered before 51 batches are under way
    And a sync of 55 records with operation "upsert"
    When the sync runs
    Then at most 50 batches are under way at once
    And every run completes

  @PACE-005 @should @published @spec-4.2
  Scenario: As many batches are under way as the destination allows
    A slow destination is fast enough only when its batches run beside each other.
    Cause: batches are sent one after the other.
    Fix: send batches in parallel, up to maximum_parallel_batches.
    Good: {"maximum_parallel_batches":4,"…":"…"}, and four batches come before the first is answered
    Bad: {"maximum_parallel_batches":4,"…":"…"}, and the second batch waits for the answer to the first

    Given a destination that takes 1 record in a batch, 4 batches at once and 100000 records per second
    And no batch is answered before 4 batches are under way
    And a sync of 8 records with operation "upsert"
    When the sync runs
    Then 4 batches are under way at once

  @PACE-006 @must @published @spec-4.2
  Scenario: No second brings more records than maximum_records_per_second
    The limit is about records, not batches, over all parallel batches of the sync: what lies behind
    the destination counts records.
    Cause: the limit is applied to batches, or to each of the parallel ones by itself.
    Fix: count the records of all batches of the sync that were sent within the last second.
    Good: {"maximum_batch_size":2,"maximum_records_per_second":10,"…":"…"}, and 5 batches in the first second
    Bad: {"maximum_batch_size":2,"maximum_records_per_second":10,"…":"…"}, and 7 batches at once

    Given a destination that takes 2 records in a batch, 4 batches at once and 10 records per second
    And a sync of 14 records with operation "upsert"
    When the sync runs
    Then no second brings more than 10 records
    And every record of the source is in the destination

  @PACE-008 @should @spec @spec-8
  Scenario: The speed is that of one sync, not of the connection
    get_sync_speed governs one sync. Several syncs of a connection each have the whole of it, and are
    held together by X-RateLimit-Limit alone.
    Cause: the places for batches belong to the connection.
    Fix: give every run its own places.
    Good: {"maximum_parallel_batches":1,"…":"…"}, and one batch of each of two syncs under way
    Bad: {"maximum_parallel_batches":1,"…":"…"}, and the second sync waits for the first

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And a sync of 3 records with operation "upsert"
    And a sync of 3 records with operation "upsert"
    And no batch is answered before 1 batches of each sync are under way
    When all syncs run at once
    Then batches of 2 syncs are under way at once
    And at most 1 batches of each sync are under way at once

  @PACE-009 @must @published @spec-4.2
  Scenario: A changed speed holds from the next run on
    A destination that is under pressure lowers its speed, and expects the next run to keep to it.
    Cause: the answer to get_sync_speed is kept.
    Fix: use the answer that this run has got.
    Good: run 1 with "maximum_batch_size":10 sends 6 records at once, run 2 with "maximum_batch_size":2 sends three batches
    Bad: run 1 with "maximum_batch_size":10, run 2 with "maximum_batch_size":2, and 6 records at once in both

    Given a destination that takes 10 records in a batch, 4 batches at once and 100000 records per second
    And a sync of 6 records with operation "upsert"
    When the sync runs
    And the destination then takes 2 records in a batch, 4 batches at once and 100000 records per second
    And the source then holds
      | id   | name    |
      | "x1" | "Xia"   |
      | "x2" | "Xeno"  |
      | "x3" | "Xaver" |
      | "x4" | "Xu"    |
      | "x5" | "Xara"  |
    And the sync runs
    Then no batch of run 2 has more than 2 records
    And every record of the source is in the destination

  @PACE-010 @must @spec @spec-7.2.1 @clock
  Scenario: A speed without its keys fails the run
    Without one of the three numbers nobody knows how fast the destination may be called. The call
    fails, and nothing may be sent.
    Cause: a missing key counts as zero, as no limit, or as some default.
    Fix: fail the call when one of the keys is missing, and send no batch.
    Good: {"result":{"maximum_batch_size":10}}, and the run fails
    Bad: {"result":{"maximum_batch_size":10}}, and batches come

    Given a sync of 3 records with operation "upsert"
    When the sync runs with each of these answers to get_sync_speed:
      | {"maximum_parallel_batches":4,"maximum_records_per_second":100} |
      | {"maximum_batch_size":10,"maximum_records_per_second":100}      |
      | {"maximum_batch_size":10,"maximum_parallel_batches":4}          |
      | {}                                                              |
    Then every run fails without a batch

  @PACE-011 @must @published @spec-7.2.1 @clock
  Scenario: A speed that is no integer fails the run
    The three values are integers. What a destination means by another value cannot be known.
    Cause: the answer is decoded loosely, and what does not fit becomes zero or a default.
    Fix: fail the call when one of the values is no integer, and send no batch.
    Good: {"result":{"maximum_batch_size":"10","…":"…"}}, and the run fails
    Bad: {"result":{"maximum_batch_size":"10","…":"…"}}, and batches come

    Given a sync of 3 records with operation "upsert"
    When the sync runs with each of these answers to get_sync_speed:
      | {"maximum_batch_size":"10","maximum_parallel_batches":4,"maximum_records_per_second":100}  |
      | {"maximum_batch_size":10,"maximum_parallel_batches":null,"maximum_records_per_second":100} |
      | {"maximum_batch_size":10,"maximum_parallel_batches":4,"maximum_records_per_second":true}   |
      | {"maximum_batch_size":2.5,"maximum_parallel_batches":4,"maximum_records_per_second":100}   |
    Then every run fails without a batch

  @PACE-013 @must @spec @spec-8
  Scenario: X-RateLimit-Limit bounds the calls of a connection
    A destination behind a gateway names how many requests it takes in a second. More are refused or
    cost money.
    Cause: the header is not read.
    Fix: send no more requests on the connection within a second than X-RateLimit-Limit says.
    Good: X-RateLimit-Limit: 5, and 5 requests in a second
    Bad: X-RateLimit-Limit: 5, and 7 requests at once

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And every answer then has X-RateLimit-Limit "5"
    And a sync of 7 records with operation "upsert"
    When the sync runs
    Then no second after X-RateLimit-Limit "5" brings more than 5 calls
    And every record of the source is in the destination

  @PACE-014 @must @spec @spec-8 @needs-PACE-013
  Scenario: X-RateLimit-Limit bounds all syncs of a connection together
    The limit caps all simultaneous syncs of the connection. Counted for each sync it would be
    exceeded by their number.
    Cause: every run has a limiter of its own.
    Fix: let all runs of a connection share one limiter.
    Good: X-RateLimit-Limit: 5, two syncs, and 5 requests of both in a second
    Bad: X-RateLimit-Limit: 5, two syncs, and 5 requests of each in a second

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And every answer then has X-RateLimit-Limit "5"
    And a sync of 4 records with operation "upsert"
    And a sync of 4 records with operation "upsert"
    When all syncs run at once
    Then no second after X-RateLimit-Limit "5" brings more than 5 calls
    And every run completes

  @PACE-015 @must @spec @spec-8 @needs-PACE-013
  Scenario: X-RateLimit-Limit bounds planning calls too
    The limit is about all calls of the connection. A destination with many objects is asked for
    each of them, and has no more strength for that than for batches.
    Cause: the limit is passed on the way of batches only.
    Fix: let every call of the connection pass the limit.
    Good: X-RateLimit-Limit: 5, and the fields of 4 objects are asked for within more than a second
    Bad: X-RateLimit-Limit: 5, and list_fields and supported_operations come 8 times at once

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | Thing | upsert | | |
      | thing1 | Thing | upsert | | |
      | thing2 | Thing | upsert | | |
      | thing3 | Thing | upsert | | |
    And every answer then has X-RateLimit-Limit "5"
    When a client refreshes the objects of the destination
    And a client refreshes the objects of the destination
    Then no second after X-RateLimit-Limit "5" brings more than 5 calls

  @PACE-016 @must @spec @spec-8 @needs-PACE-013
  Scenario: A lower X-RateLimit-Limit holds at once
    A destination lowers the limit when it comes under pressure. That is the moment in which it must
    be heeded.
    Cause: the limit is read once, from the first answer or from get_sync_speed.
    Fix: take the limit of the latest answer.
    Good: X-RateLimit-Limit: 5 in the answer to the third batch, and 5 requests in the next second
    Bad: X-RateLimit-Limit: 5 in the answer to the third batch, and 7 more at once

    Given a destination that takes 1 record in a batch, 1 batch at once and 100000 records per second
    And every answer then has X-RateLimit-Limit "5000"
    And every answer from batch 3 on then has X-RateLimit-Limit "5"
    And a sync of 10 records with operation "upsert"
    When the sync runs
    Then no second after X-RateLimit-Limit "5" brings more than 5 calls
    And every record of the source is in the destination

  @PACE-018 @must @spec @spec-8 @needs-PACE-013
  Scenario: X-RateLimit-Limit counts in an answer that is an error
    The header may stand in any response, and a destination that is overloaded names its limit first
    of all where it refuses.
    Cause: headers are read after the body was found good.
    Fix: read the header from every response, before its body.
    Good: 500 with X-RateLimit-Limit: 5, and 5 requests in the next second
    Bad: 500 with X-RateLimit-Limit: 5, and 7 requests at once

    Given a destination that takes 1 record in a batch, 2 batches at once and 100000 records per second
    And each batch takes 50 ms
    And call 1 of sync_batch is answered with status 500 and X-RateLimit-Limit "5"
    And a sync of 14 records with operation "upsert"
    When the sync runs
    Then no second after X-RateLimit-Limit "5" brings more than 5 calls

  @PACE-022 @should @spec @spec-8
  Scenario: Without X-RateLimit-Limit calls are not held back
    The default is 50,000 requests per second: nobody is to feel it.
    Cause: the default is a low number, for the sake of caution.
    Fix: use 50,000 requests per second where the destination names no limit.
    Good: no X-RateLimit-Limit, and 10 batches as fast as they are answered
    Bad: no X-RateLimit-Limit, and 5 batches in a second

    Given a destination that takes 1 record in a batch, 4 batches at once and 100000 records per second
    And a sync of 10 records with operation "upsert"
    When the sync runs
    Then some second of the sync brings more than 5 calls
