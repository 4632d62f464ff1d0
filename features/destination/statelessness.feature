Feature: Statelessness
  Every call stands for itself; nothing is remembered between calls.

  @STA-001 @must @spec @spec-4.2.1 @hook-alter_schema @alone @evidence-responses
  @needs-FLD-001 @needs-FLD-010 @needs-OBJ-004
  Scenario: A changed schema is visible at once
    The service refreshes its own cache. A second cache behind it shows a field that is gone.
    Cause: the endpoint caches what list_fields returns.
    Fix: read the schema on each call.
    Good: (field added) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> names it
    Bad: (field added) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> does not name it for a minute

    When the service calls "list_fields" for every object
    And the hook "alter_schema" begins
    And the service calls "list_fields" for every object
    Then the fields show the change

  @STA-002 @must @spec @spec-4.2.1 @write @records-7 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-001 @needs-SEM-006
  Scenario: sync_batch works as the first call
    The service plans with one process of the endpoint and sends to another.
    Cause: the handler needs what list_fields left in memory.
    Fix: take everything from the request.
    Good: (first call) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (first call) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"call list_fields first"}}

    Given an object that can create records
    When the service sends 7 new records with the creating operation, on a fresh connection
    Then every batch is processed
    And every acknowledged record is in the destination, where a read-back shows it

  @STA-003 @must @spec @spec-4.2.1 @write @alone @records-20 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-001 @needs-SEM-006 @needs-DUR-002
  Scenario: The plan in the request counts
    Batches of several syncs come mixed. A remembered plan writes into the wrong object.
    Cause: the plan is kept from an earlier call.
    Fix: read the plan of each sync_batch.
    Good: (after a plan for order) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (after a plan for order) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":null,"success":true}]}}

    Given an object that can create records
    When the service sends no records to every other object with any operation
    And the service plans every other object
    And the service sends 3 new records with the creating operation
    And the service sends new records to the named objects in turn
    Then every record has a result
    And every acknowledged record is in the destination, where a read-back shows it

  @STA-004 @must @spec @spec-4.2.5 @write @readback-decides @records-6 @each-object @evidence-stored
  @needs-SEM-012
  Scenario: The same content after a delete is executed
    A record can be removed and come back unchanged. Taken for a repeat it stays lost.
    Cause: batches are recognised by a hash of their content.
    Fix: execute each batch.
    Good: (upsert a, delete a, then) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}
    Bad: (upsert a, delete a, then) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[],"complete":true}

    Given an object that accepts "delete"
    When the service sends 2 new records with operation "upsert"
    And the service sends the same records with operation "delete"
    And the service sends the first 2 records with operation "upsert"
    Then every acknowledged record is in the destination

  @STA-005 @should @spec @spec-4.2.1 @evidence-answers
  @needs-RPC-006 @needs-AUTH-001 @needs-OBJ-004
  Scenario: No call depends on a connection or a cookie
    The service opens connections as it needs and keeps no cookies.
    Cause: a session of the web framework is demanded.
    Fix: take the caller from the token and the rest from the request.
    Good: (new connection, no cookie) {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}
    Bad: (new connection, no cookie) {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"no session"}}

    When the service calls "supported_operations" in each of these ways:
      | on a fresh connection |
      | on a fresh connection |
    Then every reply has a result

  @STA-006 @must @spec @spec-4.2.1 @write @records-6 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006 @needs-OPS-004 @needs-OPS-007
  Scenario: A repeated call is executed anew
    The world changes between two equal calls. An answer from memory is about a world that is
    gone.
    Cause: replies are kept by the content of the request.
    Fix: execute each call.
    Good: (update of absent a was skipped, a was created) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (update of absent a was skipped, a was created) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}

    Given an object that accepts "update"
    And an object that can create records
    When the service sends 2 new records with operation "update"
    And the service sends the same records with other values with the creating operation
    And the service sends the first 2 records with operation "update"
    Then every record is acknowledged

  @STA-007 @should @spec @spec-4.2.2 @hook-restart @alone @evidence-responses
  @needs-RPC-006 @needs-AUTH-001 @needs-OBJ-004 @needs-CON-004 @needs-SPD-002 @needs-TIM-001
  Scenario: A restart between two calls changes nothing
    Endpoints are deployed and moved while syncs run.
    Cause: the first call after the start only warms up.
    Fix: be ready before the port is opened.
    Good: restart {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"operations":["upsert"]}}
    Bad: restart {"jsonrpc":"2.0","method":"supported_operations","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"warming up"}}

    When the hook "restart" is called
    And the service calls every reading method
    Then every reply has a result
