Feature: Requests to a destination
  Every call of a custom destination is one JSON-RPC request.

  @CALL-001 @must @spec @spec-4.2
  Scenario: Every call is a POST of one JSON-RPC request
    A destination is written against the published envelope, and reads nothing else.
    Cause: a member is left out or has another type.
    Fix: send {"jsonrpc":"2.0","method":…,"params":{…},"id":"…"} with POST.
    Good: POST {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"}
    Bad: POST {"method":"list_objects","id":7}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the calls of the service are POSTs of one JSON-RPC request each

  @CALL-002 @must @spec @spec-4.2
  Scenario: Every call has an id of its own
    A destination tells calls apart by their ids.
    Cause: the id is a constant, or counts for each connection anew.
    Fix: make a new id for every request.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"} and then {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"thing","label":"Thing"}},"id":"81aa"}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"1"} and then {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"thing","label":"Thing"}},"id":"1"}

    Given a sync of 250 records with operation "upsert"
    When the sync runs
    Then the calls of the service have ids of their own

  @CALL-003 @must @spec @spec-4.2
  Scenario: Every call goes to the URL of the connection
    A destination has one address for all methods. What comes to another one is lost.
    Cause: a path for each method is made out of the URL.
    Fix: POST every method to the URL as it was configured.
    Good: POST /rpc {"method":"list_fields",…}
    Bad: POST /rpc/list_fields {"method":"list_fields",…}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the calls of the service go to the URL of the connection

  @CALL-004 @must @published @spec-4.2
  Scenario: A request has the four members and no other
    A strict JSON-RPC library refuses a request with members that it does not know.
    Cause: the service adds something of its own, such as its version.
    Fix: send jsonrpc, method, params and id alone.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c","api_version":1}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of "any" has exactly the members "jsonrpc, method, params, id" in "the request"

  @CALL-005 @should @published @spec-4.2
  Scenario: The members come in the published order
    The order of members has no meaning in JSON, but a simple endpoint may read the method off the beginning, and recorded requests compare byte by byte.
    Cause: the request is written out of a map.
    Fix: write jsonrpc, method, params, id.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"}
    Bad: {"id":"5f0c","jsonrpc":"2.0","method":"list_objects","params":{}}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the calls of the service have their members in the order "jsonrpc, method, params, id"

  @CALL-006 @must @published @spec-4.2
  Scenario: Methods without parameters are called with an empty object
    An endpoint on a JSON-RPC library maps params to the arguments of a function, and refuses one that the function does not have.
    Cause: the plan of the sync is sent along with get_sync_speed, as years ago.
    Fix: send "params":{} with test_connection, list_objects and get_sync_speed.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"5f0c"}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{"sync_plan":{…}},"id":"5f0c"}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of "test_connection" has exactly the members "" in "params"
    And every call of "list_objects" has exactly the members "" in "params"
    And every call of "get_sync_speed" has exactly the members "" in "params"

  @CALL-007 @must @published @spec-4.2
  Scenario: Planning calls name their object by two members
    An endpoint finds the object by params.object.object_api_name.
    Cause: the name is sent alone, or the whole entry of list_objects.
    Fix: send "params":{"object":{"object_api_name":…,"label":…}}.
    Good: {"method":"list_fields","params":{"object":{"object_api_name":"thing","label":"Thing"}},…}
    Bad: {"method":"list_fields","params":{"object":"thing"},…}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of "list_fields" has exactly the members "object" in "params"
    And every call of "list_fields" has exactly the members "object_api_name, label" in "params.object"
    And every call of "supported_operations" has exactly the members "object" in "params"
    And every call of "supported_operations" has exactly the members "object_api_name, label" in "params.object"

  @CALL-008 @must @published @spec-4.2
  Scenario: A batch has a plan and records
    An endpoint takes sync_plan and records as the two arguments of sync_batch, and one on a library refuses a third.
    Cause: the service adds something of its own to the batch.
    Fix: send "params":{"sync_plan":{…},"records":[…]}.
    Good: {"method":"sync_batch","params":{"sync_plan":{…},"records":[{"id":"r1"}]},…}
    Bad: {"method":"sync_batch","params":{"sync_plan":{…},"records":[{"id":"r1"}],"batch":1},…}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of "sync_batch" has exactly the members "sync_plan, records" in "params"
    And every call of "sync_batch" has an array in "params.records"

  @CALL-010 @must @published @spec-4.2
  Scenario: The plan names the sync and its run
    Operators find a batch of their logs in the service by the two numbers.
    Cause: the ids are those of a queue inside the service, or are sent as strings.
    Fix: send the ids of the API as integers.
    Good: "sync_run_id":602,"sync_id":309
    Bad: "sync_run_id":"602","sync_id":"309"

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of "sync_batch" has an integer in "params.sync_plan.sync_run_id"
    And every call of "sync_batch" has an integer in "params.sync_plan.sync_id"
    And the batches of the sync name the sync and its run

  @CALL-012 @must @published @spec-4.2
  Scenario: The schema describes each field as the destination does
    A stateless endpoint knows types and flags of a field only from the schema of the batch.
    Cause: the description goes through a store that keeps only some of the eight members.
    Fix: send each field as list_fields has told it.
    Good: "field":{"field_api_name":"id","label":"id","identifier":true,"required":true,"createable":true,"updateable":true,"type":"string","array":false}
    Bad: "field":{"field_api_name":"id","type":"text"}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the batches of the sync describe fields as the destination does

  @CALL-013 @must @spec @spec-4.2
  Scenario: Exactly one field of the plan is the active identifier
    The destination matches its records by that field; with none or two of them it cannot.
    Cause: every field that may be an identifier is marked.
    Fix: mark the field of the primary identifier alone.
    Good: "schema":{"id":{"active_identifier":true,…},"name":{"active_identifier":false,…}}
    Bad: "schema":{"id":{"active_identifier":true,…},"name":{"active_identifier":true,…}}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the batches of the sync have the one active identifier "id"

  @CALL-014 @must @spec @spec-4.2
  Scenario: Every record carries its identifier
    A record without identifier can be matched with nothing, and its result neither.
    Cause: empty or repeated identifiers are sent.
    Fix: send the identifier with every record, and each identifier once.
    Good: "records":[{"id":"r1","name":"a"},{"id":"r2","name":"b"}]
    Bad: "records":[{"id":"r1","name":"a"},{"name":"b"}]

    Given a sync of 250 records with operation "upsert"
    When the sync runs
    Then the batches of the sync bring every "id" once

  @CALL-016 @must @spec @spec-4.2
  Scenario: Every batch says its operation
    The destination enforces insert, update and upsert: it has to know which of them is meant.
    Cause: upsert is sent whatever the sync does.
    Fix: send the operation of the sync in sync_plan.operation.
    Good: "sync_plan":{"operation":"insert",…}
    Bad: "sync_plan":{"operation":"upsert",…} in a sync that inserts

    Given a sync of 3 records with operation "insert"
    When the sync runs
    Then every batch has the operation "insert"
    Given a sync of 3 records with operation "update"
    When the sync runs
    Then every batch has the operation "update"
    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every batch has the operation "upsert"

  @CALL-018 @must @spec @spec-4.2
  Scenario: Only the six methods of the protocol are called
    An endpoint knows these six, and answers anything else with an error.
    Cause: the service looks first whether the endpoint is alive, with a method of its own.
    Fix: call test_connection, list_objects, list_fields, supported_operations, get_sync_speed and sync_batch.
    Good: {"method":"test_connection",…}
    Bad: {"method":"ping",…}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the service calls no method but "test_connection, list_objects, list_fields, supported_operations, get_sync_speed, sync_batch"

  @CALL-019 @must @published @spec-4.2
  Scenario: The body is announced as JSON
    Frameworks parse a body by its Content-Type, and leave another one unread.
    Cause: the client library sets the type of a form.
    Fix: send Content-Type: application/json.
    Good: Content-Type: application/json
    Bad: Content-Type: application/x-www-form-urlencoded

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of the service has the header "Content-Type" with "application/json"

  @CALL-022 @should @published @spec-4.2
  Scenario: Every call says who calls
    Operators tell the calls of the service from others by the User-Agent, and firewalls refuse calls without one.
    Cause: the header was taken out.
    Fix: send a User-Agent.
    Good: User-Agent: Service 1.0
    Bad: no User-Agent

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of the service has the header "User-Agent"

  @CALL-024 @must @published @spec-4.2
  Scenario: Replies in gzip are understood
    What the service offers in Accept-Encoding is what endpoints answer with.
    Cause: the header is sent, but the body is not decoded.
    Fix: decode the reply by its Content-Encoding.
    Good: Content-Encoding: gzip in the reply -> the connection test passes
    Bad: Content-Encoding: gzip in the reply -> the reply is not JSON

    When a client connects a destination that answers in the encoding "gzip"
    Then the connection test has passed
    And each connection shows the object "thing"

  @CALL-026 @should @published @spec-4.2
  Scenario: Connections of the network are used again
    A handshake for every batch costs more than the batch.
    Cause: a client is made for each call.
    Fix: keep connections open between calls.
    Good: ten calls on two connections
    Bad: ten calls on ten connections

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then the calls of the service share connections of the network

  @CALL-027 @should @policy @spec-4.2
  Scenario: The headers of the connection come with every call
    Gateways before an endpoint let a call pass by such a header.
    Cause: the headers are sent with batches only.
    Fix: send the custom headers of the connection with every call.
    Good: custom_headers {"x-client-id":{"value":"a1"}} -> X-Client-Id: a1 in every call
    Bad: custom_headers {"x-client-id":{"value":"a1"}} -> get_sync_speed without it

    Given a connection with the credentials {"custom_headers":{"x-client-id":{"value":"zz-conf a1","is_secret":false}}}
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of the service has the header "x-client-id" with "zz-conf a1"

  @CALL-029 @should @policy @spec-4.2 @spec-5.2
  Scenario: A redirect is not followed
    The service calls one URL. Whoever can make it answer with a redirect would get token and records.
    Cause: the client library follows redirects by itself.
    Fix: treat a redirect as a failed call.
    Good: 307 Location: https://other.example/ -> the connection test fails
    Bad: 307 Location: https://other.example/ -> POST https://other.example/ with the token

    When a client connects a destination that answers with a redirect of status "307"
    Then the connection test has failed
    And the other destination is not called
