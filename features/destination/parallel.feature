Feature: Parallel calls
  Calls in parallel do not disturb each other.

  @PAR-001 @must @spec @spec-4.2.3 @alone @evidence-answers
  @needs-RPC-003 @needs-FLD-001 @needs-FLD-010
  Scenario: Parallel planning calls have their own replies
    The service plans many syncs at once. A crossed reply maps the fields of another object.
    Cause: state of a call is kept in a global.
    Fix: keep everything of a call in the call.
    Good: (beside a call for order) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"email","label":"Email","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}
    Bad: (beside a call for order) {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[{"field_api_name":"order_id","label":"Order_id","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}]}}

    When the service calls "list_fields" for every object
    And the service calls "list_fields" for every object 32 times in parallel
    Then every reply has the id of its request
    And every listed object has the same fields each time

  @PAR-002 @must @spec @spec-4.2.3 @write @readback-decides @alone @records-32 @each-object @evidence-stored
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-001 @needs-SEM-006
  Scenario: Parallel batches have their own results and are stored
    The service sends as many batches at once as the endpoint declares.
    Cause: a buffer or a connection is shared between calls.
    Fix: keep everything of a call in the call.
    Good: (beside a batch of b) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (beside a batch of b) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"b@x.io","success":true}]}}

    Given an object
    When the service sends 32 new records with any operation, in parallel batches
    Then every record has a result
    And every acknowledged record is in the destination

  @PAR-003 @should @spec @spec-4.2.3 @spec-4.2.5 @write @readback-required @alone @records-56 @each-object @evidence-stored
  @needs-PAR-002 @needs-SEM-007 @needs-SEM-008 @needs-FLD-011 @needs-DAT-010 @needs-FLD-014
  Scenario: Parallel upserts of one key leave one whole record
    Retries can overlap with the batch that they repeat, and two syncs can write other fields of
    one record at the same time.
    Cause: the check and the write are two steps, or a record is read, changed and written back whole.
    Fix: write only the mapped fields, in one statement with a unique key.
    Good: (a1 and a2 at once) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"2"}}],"complete":true}
    Bad: (a1 and a2 at once) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":2,"fields":{"zip":"1"}}],"complete":true}

    Given an object that accepts "upsert"
    When the service sends 3 new records with operation "upsert", 8 times in parallel with other values
    Then every acknowledged record exists once
    And every record has the values of one batch
    When the service sends the same records with operation "upsert", 8 times in parallel with another field each
    Then every field that one of the batches wrote is stored

  @PAR-004 @should @policy @spec-4.2.3 @load @alone @acquit @evidence-responses
  @needs-RPC-006
  Scenario: Parallel calls are not queued behind each other
    Declared parallelism that is served one by one makes a sync as slow as without it.
    Cause: a global lock.
    Fix: serve calls in parallel, or declare fewer parallel batches.
    Good: (16 at once) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> (30 ms) {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: (16 at once) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> (320 ms) {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    When the service calls "list_objects" 5 times
    And the service calls "list_objects" in the declared parallelism
    Then the latency in parallel stays within three times that of a single call

  @PAR-005 @must @spec @spec-4.2.3 @write @alone @records-24 @each-object @evidence-accepted
  @needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-OPS-004 @needs-SEM-006 @needs-SEM-001 @needs-PAR-002
  Scenario: Different operations in parallel do not cross
    Batches of several syncs run at once. An operation that crosses over creates or deletes what
    it must not.
    Cause: the operation is kept in a global.
    Fix: read the operation from the plan of the call.
    Good: (b is absent; beside an upsert) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"b@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"b@x.io","success":false,"error_message":"record not present"}]}}
    Bad: (b is absent; beside an upsert) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"b@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"b@x.io","success":true}]}}

    Given an object with two operations
    When the service sends 2 new records with each operation
    And the service sends 2 new records with each operation, 4 times in parallel
    Then every operation has the same outcome in parallel as alone
