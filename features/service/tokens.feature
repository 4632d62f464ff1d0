Feature: Tokens
  Two kinds of tokens open the API: one for a workspace, one for an organization.

  @TOK-001 @must @spec @spec-5.1
  Scenario: A call without a token is refused
    Without a token nobody is known, and nothing may be read.
    Cause: the endpoint stands outside of the authentication.
    Fix: answer 401 to every call of the API that has no Authorization header.
    Good: GET /syncs without Authorization -> 401 {"status":"error","message":"…"}
    Bad: GET /syncs without Authorization -> 200 {"status":"success","data":[]}

    When a client calls "GET /syncs" with no token
    Then the call is refused as unauthenticated
