Feature: Authentication
  The endpoint knows the service by its token or by a secret in the URL.

  @AUTH-001 @must @spec @spec-5.2.2 @evidence-answers
  @needs-RPC-006 @needs-RPC-007
  Scenario: The configured credentials are accepted by every method
    A method that refuses the token fails every sync, though the connection test is green.
    Cause: the middleware of one route has another token.
    Fix: check the same token for every method.
    Good: Authorization: Bearer T {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[]}}
    Bad: Authorization: Bearer T {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}},"id":"7"} -> 401

    When the service calls every method
    Then no reply refuses the caller

  @AUTH-002 @should @spec @spec-5.2.2 @evidence-responses
  @needs-AUTH-001
  Scenario: A call without credentials is refused by every method
    Whoever finds the URL could read the schema or write records.
    Cause: only the connection test looks at the header.
    Fix: check the token before the method is chosen.
    Good: (no Authorization) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 401
    Bad: (no Authorization) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    Given an auth token is configured
    When the service calls every method in each of these ways:
      | without credentials |
    Then every reply refuses the caller

  @AUTH-003 @should @spec @spec-5.2.2 @evidence-responses
  @needs-AUTH-002
  Scenario: A wrong token is refused
    A comparison by prefix or without case makes a token guessable.
    Cause: the comparison is not exact.
    Fix: compare the whole token, in constant time.
    Good: Authorization: Bearer wrong {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 401
    Bad: Authorization: Bearer TOKEN-and-more {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    Given an auth token is configured
    When the service calls "list_objects" in each of these ways:
      | with a wrong token |
      | with a truncated token |
      | with an extended token |
      | with a token in changed case |
      | with the token by Basic scheme |
      | with an empty token |
    Then every reply refuses the caller

  @AUTH-004 @must @spec @spec-5.2.3 @evidence-responses
  @needs-AUTH-001
  Scenario: A wrong or missing URL secret is refused
    The secret in the URL is how the endpoint recognises the service. Unchecked it protects
    nothing.
    Cause: the segment is routed but never compared.
    Fix: compare the declared segment of the URL on each call.
    Good: POST /?key=wrong {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 401
    Bad: POST /?key=wrong {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    Given a URL secret is configured
    When the service calls every method in each of these ways:
      | with a wrong URL secret |
      | without the URL secret |
    Then every reply refuses the caller

  @AUTH-005 @should @policy @spec-5.2.3 @evidence-responses
  @needs-AUTH-004
  Scenario: A repeated secret with one bad value is refused
    Proxies and frameworks disagree about which value counts, and an attacker uses that.
    Cause: the last value of the parameter wins.
    Fix: refuse a request that repeats the parameter.
    Good: POST /?key=wrong&key=right {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 401
    Bad: POST /?key=wrong&key=right {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    Given a URL secret is configured
    When the service calls "list_objects" in each of these ways:
      | with a wrong URL secret before the right one |
      | with a wrong URL secret after the right one |
    Then every reply refuses the caller

  @AUTH-006 @should @spec @spec-7.2.1 @spec-7.2.2 @evidence-responses
  @needs-AUTH-002
  Scenario: A refusal is an error or a 401 or 403
    Only test_connection has a "success" member. In another method the service finds no correct
    key and shows an unknown error.
    Cause: one answer is used for every method.
    Fix: answer an error object or status 401.
    Good: (no Authorization) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32001,"message":"Unauthorized"}}
    Bad: (no Authorization) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":false}}

    Given an auth token is configured
    When the service calls every method in each of these ways:
      | without credentials |
    Then every reply refuses the caller by an error or a status of 401 or 403

  @AUTH-007 @should @spec @spec-5.2.4 @evidence-responses
  @needs-RPC-001
  Scenario: No reply contains a secret
    Error messages are shown in the interface and kept in logs.
    Cause: the request is echoed for debugging.
    Fix: never put headers or the URL into a reply.
    Good: (wrong token) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32001,"message":"Unauthorized"}}
    Bad: (wrong token) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32001,"message":"bad header: Bearer T"}}

    When the service calls every method in each of these ways:
      | as configured |
      | with an extended token, if there is one |
      | with a wrong URL secret, if there is one |
    Then no reply contains a secret

  @AUTH-008 @must @spec @spec-5.2.3 @write @readback-required @records-4 @each-object @evidence-absent
  @needs-AUTH-001 @needs-SEM-006 @needs-SEM-001
  Scenario: An unauthenticated batch writes nothing
    A check of the token after the write protects nothing.
    Cause: the token is checked in a filter that runs after the handler.
    Fix: check the token before anything else.
    Good: (no Authorization) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> 401, then read-back {"records":[],"complete":true}
    Bad: (no Authorization) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> 401, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"1"}}],"complete":true}

    Given an auth token is configured
    And an object that can create records
    When a good new record is accepted as the control
    And the service sends 3 new records with the creating operation, without credentials
    Then no record exists

  @AUTH-009 @should @spec @spec-5.2.2 @hook-rotate_token @alone @evidence-responses
  @needs-AUTH-003
  Scenario: After rotation only the new token counts
    A token is rotated because the old one is known to somebody.
    Cause: old tokens stay in a list.
    Fix: forget the old token when the new one is set.
    Good: Authorization: Bearer OLD {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 401
    Bad: Authorization: Bearer OLD {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    Given an auth token is configured
    When the hook "rotate_token" begins
    And the service calls "list_objects" in each of these ways:
      | with the token before the rotation |
    Then every reply refuses the caller
