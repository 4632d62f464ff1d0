Feature: Connections to destinations
  A connection is made, shown, tested and changed through /destinations.

  @DST-001 @must @spec @spec-2.2
  Scenario: A destination shows its fields with their types
    API clients decode a destination into fixed types, wherever they meet one.
    Cause: a view leaves a field out, or writes it in another type.
    Fix: give every field of the table in the answers of POST, GET and PATCH and in the list.
    Good: {"id":7,"name":"Shop","created_at":"2026-01-05T09:00:00Z","last_test_results":{"steps":[]},"last_test_succeeded":true,"last_tested_at":"2026-01-05T09:00:01Z","connection_details":{},"objects":[]}
    Bad: {"id":"7","name":"Shop","created_at":1767603600,"connection_details":null}

    Given a connection
    When a client looks at the destination in every way
    Then every destination shown has the members:
      | id                  | integer   |
      | name                | string    |
      | created_at          | timestamp |
      | last_test_results   | object    |
      | last_test_succeeded | boolean   |
      | last_tested_at      | timestamp |
      | connection_details  | object    |
      | objects             | array     |

  @DST-003 @must @spec @spec-2.2 @spec-4
  Scenario: A destination is shown as it was made
    A client that compares what it sent with what it reads would change the connection for ever.
    Cause: the name is trimmed, folded or taken from elsewhere; an id is that of another resource.
    Fix: show the stored name and one id in every view.
    Good: POST {"service_connection":{"name":"Shop",…}} -> 201 {"data":{"id":7,"name":"Shop"}}, GET /destinations/7 -> 200 {"data":{"id":7,"name":"Shop"}}
    Bad: POST {"service_connection":{"name":"Shop",…}} -> 201 {"data":{"id":7,"name":"shop"}}

    Given a connection
    When a client looks at the destination in every way
    Then every destination shown has the values:
      | id   | {destination} |
      | name | "{given}"     |

  @DST-005 @must @spec @spec-2.1 @spec-4
  Scenario: The list of destinations holds what was made, once
    Clients find a connection by its name in the list; a missing one is made again.
    Cause: the list is read from a cache, or joined with another table.
    Fix: list every destination of the workspace once.
    Good: GET /destinations -> 200 {"status":"success","data":[{"id":7}]}
    Bad: GET /destinations -> 200 {"status":"success","data":[{"id":7},{"id":7}]}

    Given a connection
    When a client lists the destination
    Then the list "/destinations" shows "{given}" once
    And each call is answered with 200
    And the status of each answer is one of "success"

  @DST-007 @must @spec @spec-4
  Scenario: A change of the name is kept
    A change that is answered and not stored is lost without anybody noticing.
    Cause: the answer is made from the request.
    Fix: store the change before the answer.
    Good: PATCH /destinations/7 {"service_connection":{"name":"Store"}} -> 200, GET /destinations/7 -> {"data":{"name":"Store"}}
    Bad: PATCH /destinations/7 {"service_connection":{"name":"Store"}} -> 200, GET /destinations/7 -> {"data":{"name":"Shop"}}

    Given a connection
    When a client updates the destination with {"name":"{this_name_new}"}
    And a client fetches the destination
    And a client lists the destination
    Then every destination shown has the values:
      | id   | {destination} |
      | name | "{this_name_new}"  |
    And "created_at" of every destination shown is the same as before

  @DST-008 @should @policy @spec-4
  Scenario: A change of the name alone leaves the credentials
    Clients do not have the secrets any more when they rename a connection.
    Cause: the stored credentials are replaced by the missing ones of the request.
    Fix: keep what the request leaves out.
    Good: PATCH /destinations/7 {"service_connection":{"name":"Store"}} and then a call to the same URL with the same token
    Bad: PATCH /destinations/7 {"service_connection":{"name":"Store"}} and then a call without the token

    Given a connection with the credentials {"auth_token":"{secret}"}
    When a client updates the destination with {"name":"{this_name_new}"}
    Then the latest call of the service is test_connection
    And the service calls the endpoint with the token "{secret}"
    And every destination shown has the values:
      | connection_details.webhook_url | "{url}" |

  @DST-009 @must @published @spec-4
  Scenario: A destination that does not exist is answered with 404
    Clients take 404 for gone and make the thing again; anything else stops them.
    Cause: an unknown id ends in an error of the server, or in an empty answer.
    Fix: answer 404.
    Good: GET /destinations/2000000011 -> 404 {"status":"not_found","message":"…"}
    Bad: GET /destinations/2000000011 -> 200 {"status":"success","data":null}

    When a client makes each call with its own token:
      | GET /destinations/{nobody} |  |
      | PATCH /destinations/{nobody} | {"service_connection":{"name":"nobody"}} |
      | GET /destinations/{nobody}/objects |  |
      | GET /destinations/{nobody}/objects/thing |  |
    Then each call is answered with 404

  @DST-011 @must @spec @spec-2.2
  Scenario: The answer to a change reports whether it is a file system
    Clients that change a connection to files read it to know what paths they may use.
    Cause: the field is left out for everything that is no file system.
    Fix: give is_file_system_destination, true or false, in the answer of PATCH.
    Good: PATCH /destinations/7 -> 200 {"status":"updated","data":{"is_file_system_destination":false}}
    Bad: PATCH /destinations/7 -> 200 {"status":"updated","data":{"is_file_system_destination":null}}

    Given a connection
    When a client saves the destination
    Then every destination shown has the values:
      | is_file_system_destination | false |

  @DST-013 @must @spec @spec-3 @spec-4.2
  Scenario: The test of a healthy endpoint succeeds
    Clients wait for last_test_succeeded before they make a sync.
    Cause: the result of the test is not stored, or a step is judged wrongly.
    Fix: set last_test_succeeded when test_connection answers success: true.
    Good: test_connection -> {"success":true}, GET /destinations/7 -> {"data":{"last_test_succeeded":true}}
    Bad: test_connection -> {"success":true}, GET /destinations/7 -> {"data":{"last_test_succeeded":false}}

    Given a connection
    When a client looks at the destination in every way
    Then every destination shown has the values:
      | last_test_succeeded | true |

  @DST-015 @must @spec @spec-7.1.3 @spec-7.2.3
  Scenario: A failed step carries the message of the endpoint
    The message is all that the person who sets the connection up has to go by.
    Cause: the message is replaced by a general one.
    Fix: put error_message of test_connection into steps[].error.message.
    Good: test_connection -> {"success":false,"error_message":"The API Key is invalid"}, "steps":[{"step":"test_connection","status":"failed","error":{"message":"The API Key is invalid"}}]
    Bad: test_connection -> {"success":false,"error_message":"The API Key is invalid"}, "steps":[{"step":"test_connection","status":"failed","error":{"message":"failed"}}]

    Given a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{"success":false,"error_message":"The API Key is invalid"}} |
    When a client looks at the destination in every way
    Then some step of the latest test failed with "The API Key is invalid"

  @DST-016 @must @spec @spec-7.1.3 @spec-7.2.2
  Scenario: A failed step carries the message of a JSON-RPC error
    Endpoints built on a library of JSON-RPC report what is wrong as an error object.
    Cause: the error object is thrown away.
    Fix: put the message of the error into steps[].error.message.
    Good: test_connection -> {"error":{"code":-32001,"message":"key revoked"}}, "steps":[{"step":"test_connection","status":"failed","error":{"message":"key revoked (-32001)"}}]
    Bad: test_connection -> {"error":{"code":-32001,"message":"key revoked"}}, "steps":[{"step":"test_connection","status":"failed","error":{"message":"unknown error"}}]

    Given a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"error":{"code":-32001,"message":"key revoked"}} |
    When a client looks at the destination in every way
    Then some step of the latest test failed with "key revoked"
    And every destination shown has the values:
      | last_test_succeeded | false |

  @DST-017 @must @spec @spec-3 @spec-7.1.3
  Scenario: Whatever goes wrong in a test is told
    A test that fails without a reason leaves nothing to mend.
    Cause: only one kind of failure is reported.
    Fix: let the step fail with a message for every answer that is no success.
    Good: test_connection -> HTTP 500, "last_test_succeeded":false,"steps":[{"step":"test_connection","status":"failed","error":{"message":"HTTP 500"}}]
    Bad: test_connection -> HTTP 500, "last_test_succeeded":false,"steps":[]

    Given a connection
    When the destination answers every "test_connection" with HTTP 500
    And a client saves the destination
    Then some step of the latest test failed
    When the destination answers every "test_connection" with <html><body>Welcome</body></html>
    And a client saves the destination again
    Then some step of the latest test failed
    When the destination answers every "test_connection" with {"jsonrpc":"2.0","id":{id},"result":{}}
    And a client saves the destination again
    Then some step of the latest test failed
    When the destination answers every "test_connection" with no reply
    And a client saves the destination again
    Then some step of the latest test failed
    And every destination shown has the values:
      | last_test_succeeded | false |

  @DST-018 @must @published @spec-4.2
  Scenario: Saving a connection tests it
    Only a test shows whether the new credentials work.
    Cause: the test runs at creation only.
    Fix: call test_connection whenever the connection is saved.
    Good: PATCH /destinations/7 and then {"method":"test_connection"} at the endpoint
    Bad: PATCH /destinations/7 and no call at the endpoint

    Given a connection
    Then the latest call of the service is test_connection
    When a client saves the destination
    Then the latest call of the service is test_connection

  @DST-019 @must @spec @spec-3
  Scenario: The latest test is the one that counts
    An old result would hide that a connection broke, or that it was mended.
    Cause: the first result is kept.
    Fix: replace last_test_succeeded and last_test_results by every test.
    Good: a failing test and then a passing one: "last_test_succeeded":true,"steps":[{"step":"test_connection","status":"passed","error":null}]
    Bad: a failing test and then a passing one: "last_test_succeeded":false

    Given a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{"success":false,"error_message":"The API Key is invalid"}} |
    When the destination answers every "test_connection" with {"jsonrpc":"2.0","id":{id},"result":{"success":true}}
    And a client updates the destination with {"name":"{this_name_new}"}
    And a client fetches the destination
    Then every destination shown has the values:
      | last_test_succeeded | true |
    And every test step shown has the members:
      | error | optional null |

  @DST-022 @must @spec @spec-9
  Scenario: The version of the protocol is one of the credentials
    A connection is moved to another version by its credentials, and keeps the version it has until then.
    Cause: the version is not stored with the connection.
    Fix: take api_version at creation and in every change, and show it.
    Good: PATCH /destinations/7 {"service_connection":{"credentials":{"api_version":1}}} -> 200 {"data":{"connection_details":{"api_version":1}}}
    Bad: PATCH /destinations/7 {"service_connection":{"credentials":{"api_version":1}}} -> 400

    Given a connection with the credentials {"api_version":1}
    When a client updates the destination with {"credentials":{"api_version":1}}
    Then each call is answered with 200
    And every destination shown has the values:
      | connection_details.api_version | 1 |

  @DST-023 @must @spec @spec-5.2.2
  Scenario: The token of a connection can be changed
    A token that leaked must be replaced without making the connection anew.
    Cause: the token is written at creation only.
    Fix: store the new token, and send it from the next call on.
    Good: PATCH {"service_connection":{"credentials":{"auth_token":"new"}}} and then Authorization: Bearer new
    Bad: PATCH {"service_connection":{"credentials":{"auth_token":"new"}}} and then Authorization: Bearer old

    Given a connection with the credentials {"auth_token":"{secret_old}"}
    Then the service calls the endpoint with the token "{secret_old}"
    When a client updates the destination with {"credentials":{"auth_token":"{secret_new}"}}
    Then the service calls the endpoint with the token "{secret_new}"

  @DST-024 @must @spec @spec-5.2.2
  Scenario: The token of a connection cannot be removed
    An endpoint that has relied on a token would be called without one.
    Cause: null or an empty text deletes the token.
    Fix: refuse a change that takes the token away, or keep the token.
    Good: PATCH {"service_connection":{"credentials":{"auth_token":null}}} -> 400, and every call still has Authorization
    Bad: PATCH {"service_connection":{"credentials":{"auth_token":null}}} -> 200, and calls have no Authorization

    Given a connection with the credentials {"auth_token":"{secret}"}
    When a client updates the destination with {"credentials":{"auth_token":null}}
    And a client saves the destination
    Then the service calls the endpoint with the token "{secret}"
    When a client updates the destination with {"credentials":{"auth_token":""}}
    And a client saves the destination
    Then the service calls the endpoint with the token "{secret}"

  @DST-028 @must @published @spec-4 @spec-7.1
  Scenario: A connection that cannot be is refused with a reason
    A mistake that is taken shows up much later, in a run.
    Cause: the body is stored before it is checked.
    Fix: answer 400 {"status":"error","message":…} and make nothing.
    Good: POST /destinations {"service_connection":{"name":"Shop","type":"no_such_type","credentials":{}}} -> 400 {"status":"error","message":"…"}
    Bad: POST /destinations {"service_connection":{"name":"Shop","type":"no_such_type","credentials":{}}} -> 201

    When a client makes each call with its own token:
      | POST /destinations | {"service_connection":{"name":"{this_name}","type":"zz_no_such_type","credentials":{}}} |
      | POST /destinations | {"service_connection":{"name":"{this_name}","type":"custom_api","credentials":{}}} |
      | POST /destinations | {"service_connection":{"name":"{this_name}","type":"custom_api","credentials":{"api_version":1,"webhook_url":"no address"}}} |
    Then each call is answered with 400
    And the status of each answer is one of "error"
    And the list "/destinations" shows "{this_name}" nowhere

  @DST-029 @must @published @spec-4
  Scenario: A destination that was deleted is gone
    A connection that stays keeps its secrets in the service.
    Cause: the destination is hidden in one place only.
    Fix: answer 200 {"status":"deleted"}, and 404 from then on.
    Good: DELETE /destinations/7 -> 200 {"status":"deleted"}, GET /destinations/7 -> 404
    Bad: DELETE /destinations/7 -> 200 {"status":"deleted"}, GET /destinations/7 -> 200

    Given a connection
    When a client makes each call with its own token:
      | DELETE /destinations/{destination} |  |
    Then each call is answered with 200
    And the status of each answer is one of "deleted"
    And the list "/destinations" shows "{given}" nowhere
    When a client fetches the destination
    Then each call is answered with 404

  @DST-030 @must @spec @spec-5.2.3 @clock
  Scenario: Secrets in the URL stand nowhere but in the connection
    A run that fails is told of in many places: an error, a history, an e-mail. A URL with its secrets opens the endpoint from each of them.
    Cause: the error of the HTTP library is stored with the run, and it names the URL.
    Fix: take the URL out of every error before it is stored or sent.
    Good: "error_message":"the endpoint closed the connection"
    Bad: "error_message":"Post \"https://shop.example/rpc?api_key=…\": EOF"

    Given a workspace whose notices go to 1 address
    And a webhook with every event
    And a connection whose URL ends in "/{secret_path}?api_key={secret_query}"
    And the destination answers every "sync_batch" with no reply
    And a sync with:
      | field            | value |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": null}] |
    When the sync runs
    And a client looks at all that tells of the sync
    Then run 1 is failed
    And no answer shows "{secret_query}", but for the URL among the connection details
    And no answer shows "{secret_path}", but for the URL among the connection details

  @DST-031 @should @policy @spec-5.2.2 @clock
  Scenario: The token and the secret headers of a connection stand nowhere
    They are sent with every call, so an error or a log that holds the request holds them.
    Cause: the request that failed is kept with its headers.
    Fix: take what is secret out of every error and log before it is stored or sent.
    Good: "status_message":"the endpoint closed the connection"
    Bad: "status_message":"POST with Authorization: Bearer … failed"

    Given a workspace whose notices go to 1 address
    And a webhook with every event
    And a connection with the credentials {"auth_token":"{secret_token}","custom_headers":{"X-Key":{"value":"{secret_header}","is_secret":true}}}
    And the destination answers every "sync_batch" with no reply
    And a sync with:
      | field            | value |
      | alert_attributes | [{"type": "FailureAlertConfiguration", "send_for": "every_time", "should_send_recovery": true, "options": null}] |
    When the sync runs
    And a client looks at all that tells of the sync
    Then run 1 is failed
    And no answer shows "{secret_token}"
    And no answer shows "{secret_header}"
