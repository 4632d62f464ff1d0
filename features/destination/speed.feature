@needs-RPC-006 @needs-RPC-007 @needs-AUTH-001
Feature: Sync speed and rate limit
  What the endpoint declares decides how fast the service sends.

  @SPD-001 @must @published @spec-4.2 @evidence-answers
  @needs-SPD-002
  Scenario: The sync speed is three positive integers
    The service cuts and paces batches by these numbers. Without them no sync starts.
    Cause: the numbers come from a configuration as text, or one is optional.
    Fix: answer the three keys with integers of at least 1.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":"100","maximum_parallel_batches":4}}

    When the service calls "get_sync_speed"
    Then the declared speed has three positive integers

  @SPD-002 @must @spec @published @spec-4.2 @evidence-answers
  Scenario: get_sync_speed answers empty params
    The service sends params {} since 2022. An endpoint that waits for a plan never starts a
    sync.
    Cause: the first text of the protocol is implemented, or the call fails or hangs.
    Fix: need no params.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"sync_plan is missing"}}

    When the service calls "get_sync_speed"
    Then every reply has a result

  @SPD-003 @should @spec @spec-8 @evidence-responses
  @needs-SPD-001
  Scenario: A batch fits into its deadline at the declared rate
    The service waits for one batch only so long. A batch that is larger than rate times
    deadline is always too late.
    Cause: the numbers were chosen apart from each other.
    Fix: lower maximum_batch_size or raise maximum_records_per_second.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":10000,"maximum_parallel_batches":4,"maximum_records_per_second":1}}

    When the service calls "get_sync_speed"
    Then the declared speed lets a batch finish within the batch deadline

  @SPD-004 @should @spec @spec-8 @evidence-responses
  @needs-SPD-001 @needs-RL-001
  Scenario: The declared speed stays below the rate limit
    The rate limit caps all syncs of the connection. A speed that needs more requests than that
    is never reached.
    Cause: the header was set to a low number for another reason.
    Fix: raise X-RateLimit-Limit or the batch size.
    Good: (X-RateLimit-Limit: 50000) {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":16,"maximum_records_per_second":1000000}}
    Bad: (X-RateLimit-Limit: 500) {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":16,"maximum_records_per_second":1000000}}

    When the service calls "get_sync_speed"
    Then the declared speed stays below the rate limit

  @SPD-005 @should @policy @spec-4.2 @evidence-responses
  @needs-SPD-001
  Scenario: The sync speed is stable
    The service asks once before a sync. A number that changes by chance makes runs impossible
    to compare.
    Cause: the number is drawn from the load of the moment.
    Fix: answer a configured number.
    Good: (each time) {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: (the second time) {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":873}}

    When the service calls "get_sync_speed" 5 times
    Then the declared speed stays the same

  @SPD-006 @must @spec @published @spec-4.2 @write @records-2000 @last @first-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-RES-013 @needs-RES-020 @needs-DUR-001 @needs-FLD-011 @needs-FLD-014 @needs-DAT-003 @needs-DAT-010 @needs-DAT-016 @needs-DUP-001 @needs-SEM-002 @needs-SEM-004 @needs-SEM-007 @needs-SEM-009
  Scenario: A batch of the declared size works
    The service fills batches up to the declared size. A smaller real limit fails every full
    batch.
    Cause: a body limit or a parameter limit of the database, or large batches take a path of their own.
    Fix: raise the limit, cut the batch before the database, or declare a smaller one.
    Good: (1000 records) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true},{"identifier":"b@x.io","success":true}]}}
    Bad: (1000 records) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"},{"email":"b@x.io","zip":"2"}]},"id":"7"} -> 413 Payload Too Large

    Given an object with the most fields
    When the service sends full batches of new, repeated and changed records with every operation of a mirror
    Then every batch is processed

  @SPD-007 @should @spec @spec-4.2.3 @write @load @records-200 @alone @acquit @first-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: The declared number of parallel batches works
    The service sends that many batches at once. Failures under its own declared load make every
    sync slow.
    Cause: the connection pool is smaller than the declaration.
    Fix: declare what the pool holds.
    Good: (16 at once) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (16 at once) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"too many connections"}}

    Given an object
    When the service sends 64 new records with any operation, in parallel batches
    Then every batch is processed

  @SPD-008 @should @spec @spec-8 @write @load @records-2000 @alone @acquit @first-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004
  Scenario: The declared rate can be kept up
    A sync of a large table runs for hours. An endpoint that slows down runs into the deadline.
    Cause: queues or locks grow with the number of records.
    Fix: declare the rate that can be kept up.
    Good: (for 30 s) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> (80 ms) {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (for 30 s) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> (31 s) {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object
    When the service sends 2000 new records with any operation, at the declared rate
    Then every reply arrives within the batch deadline

  @RL-001 @must @spec @spec-8 @evidence-responses
  Scenario: The rate limit header is a positive integer
    The header is an integer of requests per second. A value that does not parse leaves the
    default of 50,000.
    Cause: the syntax of another rate limit draft is used.
    Fix: send X-RateLimit-Limit: 100 or leave it out.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 50000
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 100;w=60

    When the service calls every reading method
    Then the rate limit header is a positive integer

  @RL-002 @should @policy @spec-8 @evidence-responses
  Scenario: The rate limit header has one value
    Of two values the service takes one that nobody chose.
    Cause: a proxy adds its own.
    Fix: send the header once.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 50000
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 50000, X-RateLimit-Limit: 100

    When the service calls every reading method
    Then the rate limit header has one value

  @RL-003 @should @policy @spec-8 @alone @evidence-responses
  @needs-RL-001 @needs-RL-002
  Scenario: The rate limit header is the same on every reply
    Each reply overrides the limit of the connection. A header that jumps makes all syncs jump.
    Cause: the header is set per route, or counts what is left.
    Fix: send the same limit with results and errors.
    Good: (each time) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 50000
    Bad: (the second time) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 X-RateLimit-Limit: 100000

    When the service calls every reading method
    And the service calls a method that does not exist
    Then the rate limit header is the same on every reply

  @RL-004 @should @spec @spec-8 @load @alone @evidence-responses
  @needs-RL-001 @needs-RL-003
  Scenario: Nothing is refused below the declared rate limit
    The service trusts the header and sends up to it. Refusals below it turn into retries.
    Cause: the limit of a gateway is lower than the header.
    Fix: declare the limit that is enforced.
    Good: (at 90 % of the limit) {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: (at 50 % of the limit) {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> 429 Too Many Requests

    When the service calls "test_connection" at 90 % of the rate limit
    Then no reply refuses the rate

  @RL-005 @must @spec @spec-4.2.2 @write @load @readback-required @records-300 @alone @first-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001 @needs-DUR-001 @needs-DUR-002
  Scenario: A throttled batch is never acknowledged
    A record that was acknowledged is never sent again. Dropping it under load loses it for
    good.
    Cause: the write to the destination was throttled and the error was swallowed.
    Fix: answer 429 or an error, or mark the records as failed.
    Good: (too fast) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> 429, then read-back {"records":[],"complete":true}
    Bad: (too fast) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that can create records
    When the service sends 300 new records with the creating operation, one by one in parallel
    Then every acknowledged record is in the destination

  @RL-006 @info @spec @spec-8
  Scenario: The rate limit in force is noted
    Without the header the default of 50,000 requests per second applies to the connection.
    Cause: no header is sent.
    Fix: nothing has to change; send the header when the endpoint can do less.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 (no X-RateLimit-Limit: 50000 applies)
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 (no X-RateLimit-Limit, though less can be served)

    When the service calls every reading method
    Then it is noted which rate limit applies
