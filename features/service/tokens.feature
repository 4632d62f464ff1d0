Feature: Tokens
  Two kinds of tokens open the API: one for a workspace, one for an organization.

  @TOK-002 @must @spec @spec-5.1
  Scenario: Every endpoint of a workspace wants a token
    A single open endpoint gives away what the others protect.
    Cause: authentication is added endpoint by endpoint, and one was forgotten.
    Fix: put the authentication before the routes.
    Good: GET /source_types without Authorization -> 401
    Bad: GET /source_types without Authorization -> 200

    Given things of a workspace
    When a client makes each call with no token:
      | GET /destinations                                | |
      | POST /destinations                               | {"service_connection":{"name":"{name}","type":"custom_api","credentials":{"api_version":1,"webhook_url":"https://127.0.0.1:9/"}}} |
      | GET /destinations/{destination}                  | |
      | PATCH /destinations/{destination}                | {"service_connection":{"name":"{name}"}} |
      | GET /destinations/{destination}/objects          | |
      | GET /destinations/{destination}/objects/thing    | |
      | GET /syncs                                       | |
      | GET /syncs/{sync}                                | |
      | PATCH /syncs/{sync}                              | {"paused":true} |
      | GET /syncs/{sync}/sync_runs                      | |
      | GET /source_types                                | |
      | POST /sources/{source}/models                    | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
      | POST /sources/{source}/topics                    | {"name":"{name}","sample_message":{"id":1}} |
      | PATCH /sources/{source}/topics/{nobody}          | {"description":"changed"} |
    Then each call is refused

  @TOK-003 @must @spec @spec-5.1
  Scenario: Every endpoint of the organization wants a token
    Who may invite people without a token gives the whole organization away.
    Cause: authentication is added endpoint by endpoint, and one was forgotten.
    Fix: put the authentication before the routes.
    Good: POST /invitations without Authorization -> 401
    Bad: POST /invitations without Authorization -> 200 {"status":"success","data":{"id":7,"…":"…"}}

    Given things of an organization
    When a client makes each call with no token:
      | GET /users                                                       | |
      | POST /workspaces                                                 | {"name":"{name}"} |
      | POST /invitations                                                | {"email":"{email}","role":"member"} |
      | PATCH /invitations/{invitation}                                  | {"role":"admin"} |
      | POST /workspaces/{workspace}/invitations                         | {"emails":["{email}"],"role":"viewer"} |
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation}   | {"role":"editor"} |
    Then each call is refused

  @TOK-004 @must @spec @spec-5.1
  Scenario: The workspace API key opens every endpoint of the workspace
    Destinations, objects, syncs, sync runs, source types, topics and models are reached with the
    key of their workspace; a client has no other token for them.
    Cause: an endpoint looks for a user, and a key belongs to none.
    Fix: let the key of the workspace in wherever one workspace is concerned.
    Good: GET /syncs with a workspace API key -> 200
    Bad: GET /syncs with a workspace API key -> 403

    Given things of a workspace
    When a client makes each call with the workspace API key:
      | GET /destinations                                | |
      | POST /destinations                               | {"service_connection":{"name":"{name}","type":"custom_api","credentials":{"api_version":1,"webhook_url":"https://127.0.0.1:9/"}}} |
      | GET /destinations/{destination}                  | |
      | PATCH /destinations/{destination}                | {"service_connection":{"name":"{name}"}} |
      | GET /destinations/{destination}/objects          | |
      | GET /destinations/{destination}/objects/thing    | |
      | GET /syncs                                       | |
      | GET /syncs/{sync}                                | |
      | PATCH /syncs/{sync}                              | {"paused":true} |
      | GET /syncs/{sync}/sync_runs                      | |
      | GET /source_types                                | |
      | POST /sources/{source}/models                    | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
      | POST /sources/{source}/topics                    | {"name":"{name}","sample_message":{"id":1}} |
      | PATCH /sources/{source}/topics/{nobody}          | {"description":"changed"} |
    Then each call is let in

  @TOK-005 @must @spec @spec-5.1
  Scenario: A personal access token opens every endpoint of the organization
    Invitations, workspaces and users belong to no single workspace; a person's token reaches them.
    Cause: an endpoint looks for a workspace, and a personal access token names none.
    Fix: let personal access tokens in wherever the organization is concerned.
    Good: GET /users with a personal access token -> 200
    Bad: GET /users with a personal access token -> 401

    Given things of an organization
    When a client makes each call with the personal access token:
      | GET /users                                                       | |
      | POST /workspaces                                                 | {"name":"{name}"} |
      | POST /invitations                                                | {"email":"{email}","role":"member"} |
      | PATCH /invitations/{invitation}                                  | {"role":"admin"} |
      | POST /workspaces/{workspace}/invitations                         | {"emails":["{email}"],"role":"viewer"} |
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation}   | {"role":"editor"} |
    Then each call is let in

  @TOK-006 @must @published @spec-5.1
  Scenario: A personal access token does not open a workspace
    A person's token names no workspace; a service that guesses one reads and writes in the wrong one.
    Cause: the first workspace of the person is taken.
    Fix: answer 403 and say that the API key of the workspace is needed.
    Good: GET /syncs with a personal access token -> 403 {"status":"error","message":"…"}
    Bad: GET /syncs with a personal access token -> 200

    Given things of a workspace
    When a client makes each call with the personal access token:
      | GET /destinations                                | |
      | POST /destinations                               | {"service_connection":{"name":"{name}","type":"custom_api","credentials":{"api_version":1,"webhook_url":"https://127.0.0.1:9/"}}} |
      | GET /destinations/{destination}                  | |
      | PATCH /destinations/{destination}                | {"service_connection":{"name":"{name}"}} |
      | GET /destinations/{destination}/objects          | |
      | GET /destinations/{destination}/objects/thing    | |
      | GET /syncs                                       | |
      | GET /syncs/{sync}                                | |
      | PATCH /syncs/{sync}                              | {"paused":true} |
      | GET /syncs/{sync}/sync_runs                      | |
      | GET /source_types                                | |
      | POST /sources/{source}/models                    | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
      | POST /sources/{source}/topics                    | {"name":"{name}","sample_message":{"id":1}} |
      | PATCH /sources/{source}/topics/{nobody}          | {"description":"changed"} |
    Then each call is refused

  @TOK-007 @must @published @spec-5.1
  Scenario: A workspace API key does not open the organization
    A key is handed to programs. With the rights of a person they could invite strangers.
    Cause: both kinds of tokens are looked up in one table, and the kind is not asked for.
    Fix: answer 403 and say that a personal access token is needed.
    Good: POST /workspaces with a workspace API key -> 403 {"status":"error","message":"…"}
    Bad: POST /workspaces with a workspace API key -> 201

    Given things of an organization
    When a client makes each call with the workspace API key:
      | GET /users                                                       | |
      | POST /workspaces                                                 | {"name":"{name}"} |
      | POST /invitations                                                | {"email":"{email}","role":"member"} |
      | PATCH /invitations/{invitation}                                  | {"role":"admin"} |
      | POST /workspaces/{workspace}/invitations                         | {"emails":["{email}"],"role":"viewer"} |
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation}   | {"role":"editor"} |
    Then each call is refused

  @TOK-008 @must @published @spec-5.1
  Scenario: A token that nobody has is refused with 401
    Clients tell by 401 that the token is bad, and by 403 that it is good for something else.
    Cause: tokens are compared by their beginning, or without regard to case.
    Fix: compare the whole token byte by byte, and answer 401 when it is unknown.
    Good: GET /syncs with Authorization: Bearer secret-token:unknown -> 401
    Bad: GET /syncs with the first half of a key -> 200

    When a client calls "GET /syncs" with each of:
      | an unknown token         |
      | a damaged key            |
      | a key that goes on       |
      | a key in other case      |
      | a damaged personal token |
      | an empty token           |
    Then each call is refused as unauthenticated

  @TOK-011 @must @published @spec-5.1
  Scenario: HTTP Basic with the user bearer is understood
    Published examples write the token into the address as https://bearer:TOKEN@…, and clients still do so.
    Cause: only the scheme Bearer is read.
    Fix: take the password of the user "bearer" as the token.
    Good: GET /syncs with Authorization: Basic base64(bearer:secret-token:…) -> 200
    Bad: GET /syncs with Authorization: Basic base64(bearer:secret-token:…) -> 401

    When a client calls "GET /syncs" with each of:
      | the key as password of bearer |
    Then each call is answered

  @TOK-012 @must @published @spec-5.1
  Scenario: HTTP Basic opens nothing without a good token
    The user name is no secret; the password has to be a token.
    Cause: any password of the user "bearer" is taken, or any user.
    Fix: treat the password like the token of the scheme Bearer.
    Good: GET /syncs with Authorization: Basic base64(bearer:unknown) -> 401
    Bad: GET /syncs with Authorization: Basic base64(bearer:unknown) -> 200

    When a client calls "GET /syncs" with each of:
      | an unknown password of bearer |
      | no password of bearer         |
    Then each call is refused as unauthenticated

  @TOK-013 @must @spec @spec-5.1
  Scenario: The key that a new workspace was made with opens it
    Whoever makes workspaces by program goes on with the key at once; there is no page to look it up.
    Cause: the key of the answer is not the one that is kept, or it works only later.
    Fix: answer the key that opens the workspace.
    Good: POST /workspaces {"name":"A","return_workspace_api_key":true} -> 201 with api_key; GET /syncs with it -> 200
    Bad: GET /syncs with the api_key of the answer -> 401

    Given a workspace of its own
    When a client makes each call with the workspace API key:
      | GET /destinations  |
      | GET /syncs         |
      | GET /source_types  |
    Then each call is answered

  @TOK-014 @must @spec @spec-5.1
  Scenario: A key shows its own workspace only
    The key is that of the current workspace. What another workspace holds is not its business.
    Cause: rows are found by their ids alone.
    Fix: look for a thing only in the workspace of the key.
    Good: GET /destinations/4 with the key of another workspace -> 404
    Bad: GET /destinations/4 with the key of another workspace -> 200 {"status":"success","data":{"id":4,"…":"…"}}

    Given things of a workspace
    And a workspace of its own
    When a client makes each call with the workspace API key:
      | GET /destinations?per_page=100                |
      | GET /destinations/{destination}               |
      | GET /destinations/{destination}/objects       |
      | GET /syncs?per_page=100                       |
      | GET /syncs/{sync}                             |
      | GET /syncs/{sync}/sync_runs                   |
    Then no answer has the text "{given}"
    And no answer has the text "{label}"
