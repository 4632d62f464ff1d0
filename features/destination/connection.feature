Feature: Connection test
  test_connection reports whether the endpoint and what lies behind it are healthy.

  @CON-001 @must @spec @spec-4.2 @evidence-answers
  @needs-RPC-006
  Scenario: test_connection answers success as a boolean
    The service reads "success" to show the connection as healthy. Any other value is an unknown
    error.
    Cause: the status is a text or a number.
    Fix: answer {"success": true}.
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":"true"}}

    When the service calls "test_connection"
    Then every result of test_connection has a boolean "success"

  @CON-002 @should @spec @spec-7.2.3 @hook-break_downstream @alone @evidence-responses
  @needs-CON-001
  Scenario: test_connection shows an unhealthy destination
    The user presses the button to find out why a sync fails. A green answer sends them the
    wrong way.
    Cause: the method answers a constant.
    Fix: make a cheap call to the system behind the endpoint and report its failure.
    Good: (destination down) {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":false,"error_message":"database refuses connections"}}
    Bad: (destination down) {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the hook "break_downstream" begins
    And the service calls "test_connection"
    Then every result of test_connection reports the fault

  @CON-003 @should @policy @spec-4.2 @alone @evidence-answers
  @needs-CON-001
  Scenario: test_connection can be repeated
    The service calls it each time the connection is saved. A test that fails now and then is
    not believed.
    Cause: the test leaves something behind that disturbs the next one.
    Fix: make the test free of side effects.
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}} (each time)
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":false,"error_message":"already connected"}} (every third time)

    When the service calls "test_connection" 6 times
    Then every result of test_connection has the same "success"

  @CON-004 @must @spec @spec-4.2 @evidence-answers
  @needs-RPC-006 @needs-RPC-007 @needs-AUTH-001
  Scenario: test_connection answers empty params
    The service sends params {} and nothing else.
    Cause: a parameter is demanded that the service does not send, or the call fails or hangs.
    Fix: need no params.
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"missing parameter"}}

    When the service calls "test_connection"
    Then every reply has a result

  @CON-005 @must @spec @spec-4.2 @evidence-answers
  @needs-RPC-006 @needs-RPC-007 @needs-AUTH-001
  Scenario: list_objects answers empty params
    The service sends params {} and nothing else.
    Cause: a parameter is demanded that the service does not send, or the call fails or hangs.
    Fix: need no params.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[{"object_api_name":"contact","label":"Contact"}]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"missing parameter"}}

    When the service calls "list_objects"
    Then every reply has a result
