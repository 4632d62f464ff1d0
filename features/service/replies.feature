Feature: Replies that break the protocol
  What the service makes of a reply that is not what the protocol asks for.

  @RPLY-001 @must @spec @spec-7.2.1 @spec-4.2
  Scenario: A reply without result and error is a failed call
    What is taken for a success is never sent again. A reply that says neither has told nothing.
    Cause: only error is looked for, and its absence counts as success.
    Fix: fail the call with an unknown error when result and error are both missing.
    Good: {"jsonrpc":"2.0","id":"5f0c"} -> the call has failed
    Bad: {"jsonrpc":"2.0","id":"5f0c"} -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id}} |
      | {"jsonrpc":"2.0","id":{id},"success":true} |
    Then every connection test has failed

  @RPLY-003 @must @spec @spec-4.2 @spec-7.2.1
  Scenario: A reply with another id is a failed call
    It is the reply to another call, and says nothing about this one.
    Cause: the id of the reply is not compared.
    Fix: fail the call when the id is missing, another one, or no string.
    Good: "id":"5f0c" and a reply with "id":"81aa" -> the call has failed
    Bad: "id":"5f0c" and a reply with "id":"81aa" -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":"another","result":{"success":true}} |
      | {"jsonrpc":"2.0","id":7,"result":{"success":true}} |
      | {"jsonrpc":"2.0","result":{"success":true}} |
    Then every connection test has failed

  @RPLY-004 @must @spec @spec-4.2 @spec-7.2.1
  Scenario: A reply of another version of JSON-RPC is a failed call
    Whatever stands there was not written for this protocol.
    Cause: jsonrpc is not looked at.
    Fix: fail the call unless jsonrpc is the text "2.0".
    Good: {"id":"5f0c","result":{"success":true}} -> the call has failed
    Bad: {"id":"5f0c","result":{"success":true}} -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"id":{id},"result":{"success":true}} |
      | {"jsonrpc":"1.0","id":{id},"result":{"success":true}} |
      | {"jsonrpc":2.0,"id":{id},"result":{"success":true}} |
    Then every connection test has failed

  @RPLY-005 @must @spec @spec-4.2 @spec-7.2.1
  Scenario: A result that is no object is a failed call
    What is taken for a success is never sent again. The keys that a result must have stand in an object.
    Cause: anything but null is taken for a result.
    Fix: fail the call when the result is an array, a text, a number, a boolean or null.
    Good: "result":true -> the call has failed
    Bad: "result":true -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":true} |
      | {"jsonrpc":"2.0","id":{id},"result":"success"} |
      | {"jsonrpc":"2.0","id":{id},"result":[{"success":true}]} |
      | {"jsonrpc":"2.0","id":{id},"result":null} |
    Then every connection test has failed

  @RPLY-006 @must @spec @spec-4.2 @spec-7.2.1
  Scenario: A reply with result and error is a failed call
    The destination contradicts itself. What counts as a failure is sent again, what counts as a success is not.
    Cause: the result is looked at first.
    Fix: fail the call when both are there.
    Good: {"result":{"success":true},"error":{"code":-32000,"message":"down"},…} -> the call has failed
    Bad: {"result":{"success":true},"error":{"code":-32000,"message":"down"},…} -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{"success":true},"error":{"code":-32000,"message":"down"}} |
    Then every connection test has failed

  @RPLY-007 @must @spec @spec-4.2 @spec-7.2.1
  Scenario: A reply that is not JSON is a failed call
    What is taken for a success is never sent again. A login page, an empty body or half of a document come from proxies with status 200.
    Cause: the HTTP status alone decides.
    Fix: fail the call unless the body is one JSON object.
    Good: 200 <html>…</html> -> the call has failed
    Bad: 200 <html>…</html> -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | <!doctype html><html><body>welcome</body></html> |
      | ok |
      |  |
      | {"jsonrpc":"2.0","id":{id},"result":{"success":true} |
      | {"jsonrpc":"2.0","id":{id},"result":{"success":true}}{"jsonrpc":"2.0"} |
      | [{"jsonrpc":"2.0","id":{id},"result":{"success":true}}] |
    Then every connection test has failed

  @RPLY-009 @must @spec @spec-4.2
  Scenario: A call without a reply has failed
    Nobody knows what the destination has done, so the call counts for nothing. Every call requires its reply.
    Cause: an error of the network is swallowed.
    Fix: fail the call when the connection ends before its reply does.
    Good: the connection is closed -> the call has failed
    Bad: the connection is closed -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | no reply |
    Then the connection test has failed

  @RPLY-012 @should @policy @spec-7.2.2
  Scenario: An error without an id is an error
    An endpoint that cannot read a request does not know its id, and answers null.
    Cause: the id is compared before the error is looked at.
    Fix: look at the error first.
    Good: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot be parsed"}} -> "cannot be parsed"
    Bad: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot be parsed"}} -> "the id does not match"

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot be parsed"}} |
    Then the connection test has failed
    And the connection test says "cannot be parsed"

  @RPLY-013 @must @jsonrpc @spec-7.2.2
  Scenario: A malformed error is a failed call
    Who answers with an error has not succeeded, however badly it is written.
    Cause: an error that cannot be read is dropped.
    Fix: fail the call whenever there is an error.
    Good: "error":"down" -> the call has failed
    Bad: "error":"down" -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"error":"down"} |
      | {"jsonrpc":"2.0","id":{id},"error":{"code":"E1","message":"down"}} |
      | {"jsonrpc":"2.0","id":{id},"error":{"message":"down"}} |
      | {"jsonrpc":"2.0","id":{id},"error":{}} |
      | {"jsonrpc":"2.0","id":{id},"error":null} |
    Then every connection test has failed

  @RPLY-014 @must @spec @spec-7.2.1 @spec-4.2
  Scenario: A connection test has passed only where it says so
    An endpoint whose result has other keys was written for something else.
    Cause: a result without success: false is a success.
    Fix: look for success: true.
    Good: "result":{} -> the connection test has failed
    Bad: "result":{} -> the connection test has passed

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"success":"yes"}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"success":1}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"ok":true}} |
    Then every connection test has failed

  @RPLY-015 @must @spec @spec-7.2.1
  Scenario: Planning replies without their keys bring nothing to write to
    Records would be sent into an object that nobody has described.
    Cause: a missing list counts as one that the service knows from elsewhere.
    Fix: fail the call with an unknown error, and take no sync into the object.
    Good: list_fields -> "result":{} -> no sync can be made
    Bad: list_fields -> "result":{} -> the fields id and name are assumed

    When a client connects a destination that answers "list_objects" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{}} |
    And a client connects a destination that answers "list_fields" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"fields":{}}} |
    And a client connects a destination that answers "supported_operations" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"operations":"upsert"}} |
    Then a sync into "thing" is refused for each connection

  @RPLY-016 @must @published @spec-4.2
  Scenario: Members that the protocol does not know are no error
    Endpoints echo the method, or say how long they took. Published replies do.
    Cause: the reply is decoded strictly.
    Fix: ignore them.
    Good: {"jsonrpc":"2.0","method":"test_connection","id":"5f0c","result":{"success":true,"ms":3}} -> the call has succeeded
    Bad: {"jsonrpc":"2.0","method":"test_connection","id":"5f0c","result":{"success":true,"ms":3}} -> unknown error

    When a client connects a destination that answers "any" with each of:
      | {"jsonrpc":"2.0","method":"any","id":{id},"result":{result},"ms":3} |
    Then the connection test has passed
    And each connection shows the object "thing"

  @RPLY-018 @should @policy @spec-4.2
  Scenario: A result with an HTTP error is no success
    A proxy or a framework reports a failure by the status, after the handler has written its reply.
    Cause: the status is not looked at.
    Fix: fail the call when the status is not 200.
    Good: 500 with a result -> the call has failed
    Bad: 500 with a result -> the call has succeeded

    When a client connects a destination that answers "test_connection" with each of:
      | HTTP 500 {"jsonrpc":"2.0","id":{id},"result":{"success":true}} |
    Then every connection test has failed

  @RPLY-021 @must @spec @spec-7.2.1 @spec-4.2 @clock
  Scenario: Records of a malformed reply are not taken for stored, and are sent again
    The records of the batch would be lost: the service never sends again what it takes for stored.
    Cause: a batch counts as stored when its HTTP status is 200.
    Fix: count a record as stored only when a well-formed reply says so.
    Good: sync_batch -> 200 <html>…</html> -> records_updated 0, and the records come again
    Bad: sync_batch -> 200 <html>…</html> -> records_updated 1

    Given a sync of a record for each of these replies to "sync_batch":
      | {"jsonrpc":"2.0","id":{id}} |
      | {"jsonrpc":"2.0","id":"another","result":{result}} |
      | {"id":{id},"result":{result}} |
      | {"jsonrpc":"2.0","id":{id},"result":[{result}]} |
      | {"jsonrpc":"2.0","id":{id},"result":{result},"error":{"code":-32000,"message":"down"}} |
      | {"jsonrpc":"2.0","id":{id},"result":{}} |
      | {"jsonrpc":"2.0","id":{id},"result":{"record_results":{}}} |
      | <!doctype html><html><body>welcome</body></html> |
      | {"jsonrpc":"2.0","id":{id},"result":{result} |
      |  |
    When the sync runs
    Then the run shows:
      | field           | value |
      | records_updated | 1     |
    When the destination is well again
    And the sync runs
    Then run 2 sends
      | upsert | r00001 r00002 r00003 r00004 r00005 r00006 r00007 r00008 r00009 r00010 |
    And every record of the source is in the destination

  @RPLY-022 @must @spec @spec-7.2.2 @clock
  Scenario: A run shows code and message of the error that ended it
    They are all that the author of an endpoint can tell the user.
    Cause: the run says that it has failed, and nothing more.
    Fix: put both into error_message or error_detail.
    Good: "error":{"code":-32042,"message":"the quota is used up"} -> "error_message":"rpc error -32042: the quota is used up"
    Bad: "error":{"code":-32042,"message":"the quota is used up"} -> "error_message":"the run has failed"

    Given a sync of 3 records with operation "upsert"
    And the destination answers every "get_sync_speed" with {"jsonrpc":"2.0","id":{id},"error":{"code":-32042,"message":"the quota is used up"}}
    When the sync runs
    Then run 1 is failed
    And the run says "the quota is used up"
    And the run says "-32042"
