Feature: Error safety and time
  A call that fails does so quickly, readably and without harm to the next one.

  @ERR-001 @must @spec @spec-4.2.4 @write @hook-break_downstream @alone @records-3 @each-object @evidence-responses
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-006 @needs-SEM-001
  Scenario: A fault behind the endpoint is never a success
    The service repeats what failed. It never repeats what was acknowledged.
    Cause: an exception is swallowed.
    Fix: let the exception become an error or a failure of the record.
    Good: (destination down) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: (destination down) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object that can create records
    When the hook "break_downstream" begins
    And the service sends 3 new records with the creating operation
    Then no record is acknowledged

  @ERR-002 @must @spec @spec-4.2.4 @evidence-answers
  @needs-RPC-003 @needs-RPC-006 @needs-AUTH-001 @needs-CON-005
  Scenario: A good call after a bad one works
    Calls fail and are repeated. A bad one must not spoil the process or the connection for the
    next.
    Cause: a lock is not released, or the call is refused before its body is read, and the rest stays in the connection.
    Fix: read the body before you refuse a call, or close the connection behind the refusal.
    Good: (half a body) ..., {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: (half a body) ..., {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> (no answer)

    When the service calls "list_objects" in each of these ways:
      | after a body that is no JSON, on the same connection |
      | after a call without credentials, on the same connection |
      | after a PUT, on the same connection |
      | after a call that was cut in its body |
      | after a call that was cut before its reply |
    Then every call is answered

  @ERR-003 @should @spec @spec-5.2.4 @evidence-errors
  @needs-RPC-007
  Scenario: Error messages reveal nothing internal
    Messages are shown to users and kept in logs. Traces, statements and paths help an attacker.
    Cause: the exception is passed on with its trace.
    Fix: write a message for people and log the trace at home.
    Good: {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"no object nope"}}
    Bad: {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"Traceback (most recent call last): File \"/srv/app/main.py\", line 7"}}

    When the service calls "list_fields" for an object that does not exist
    And the service calls a method that does not exist
    Then every error reveals nothing internal

  @ERR-004 @should @spec @spec-7.2.2 @evidence-errors
  @needs-RPC-007
  Scenario: Error messages are short readable text
    Code and message are what the user sees.
    Cause: a whole page or dump is used as message, or none.
    Fix: write one sentence.
    Good: {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"no object nope"}}
    Bad: {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":""}}

    When the service calls "list_fields" for an object that does not exist
    And the service calls a method that does not exist
    Then every error is short readable text

  @ERR-005 @should @published @spec-7.2.5 @hook-break_downstream @alone @evidence-responses
  @needs-RPC-006
  Scenario: The endpoint fails fast
    The service has its own retries. An endpoint that retries for a minute runs into the
    deadline and hides the cause.
    Cause: a client library retries with backoff.
    Fix: switch off long retries and answer the error.
    Good: (destination down) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"database refuses connections"}}
    Bad: (destination down) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> (after a minute) {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"database refuses connections"}}

    When the hook "break_downstream" begins
    And the service calls "list_objects"
    Then every reply arrives within the planning deadline

  @TIM-001 @should @spec @spec-8 @acquit @evidence-responses
  Scenario: Planning calls come in time
    The service times out slow requests, and the user waits at the screen.
    Cause: the schema is read from a slow place on each call.
    Fix: make the lookup faster.
    Good: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> (80 ms)
    Bad: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> (12 s)

    When the service calls every reading method
    And the service calls "supported_operations" for every object
    Then every reply arrives within the planning deadline

  @TIM-002 @should @spec @spec-8 @write @acquit @last @records-1000 @first-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SPD-006
  Scenario: A full batch comes in time
    A batch that is late counts as failed and is sent again, and is late again.
    Cause: the declared batch is larger than the destination takes.
    Fix: declare a smaller maximum_batch_size.
    Good: (1000 records) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> (3 s) {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (1000 records) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> (40 s) {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}

    Given an object with the most fields
    When the service sends a full batch of new records with any operation, unless one was sent
    Then every reply arrives within the batch deadline

  @TIM-003 @should @policy @spec-8 @acquit @evidence-responses
  @needs-TIM-001
  Scenario: No reply stalls half-way
    A reply that begins and then stands still holds a connection of the service until the
    deadline.
    Cause: the body is streamed while the data is fetched.
    Fix: build the reply before the headers are sent.
    Good: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> (headers and body at once) {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}
    Bad: {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> (headers, then nothing for 8 s) {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}

    When the service calls every reading method
    And the service calls "supported_operations" for every object
    Then every reply arrives without a stall

  @ERR-006 @must @spec @spec-4.2.4 @last @write-optional @records-3 @evidence-responses
  Scenario: The endpoint stays up
    A process that ends takes every call with it that is under way, of every sync. Judged over
    the whole run, and at its end by bodies and texts that processes have died of.
    Cause: an exception that no handler catches, or memory that runs out.
    Fix: catch what a single call throws, and answer an error.
    Good: a body that is no JSON -> {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}, and the next call is answered
    Bad: a body that is no JSON -> the connection is reset, and so is every later one

    When the service sends what processes have died of
    Then the endpoint has accepted connections all the time

  @ERR-007 @should @policy @spec-4.2.4 @last @evidence-responses
  Scenario: Calls are answered when they are made
    Each call that is answered by 502, 503, 504 or 429, or not at all, costs the service a
    retry. Judged over the whole run: such a call is repeated, and breaks no other rule.
    Cause: workers that are full or restart, a balancer in front of them, or a limit below the one that is declared.
    Fix: find out why the call had no answer; declare a rate limit or a speed that the endpoint holds.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 503, and the same call is answered when it is made again

    When the service calls every reading method
    And the service calls "supported_operations" 3 times
    Then the endpoint has answered every call when it was made
