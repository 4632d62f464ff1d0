Feature: Answers and failures
  Every answer is JSON with a status, and a failure says what is wrong and changes nothing.

  @FLT-001 @must @spec @spec-4
  Scenario: Every answer is JSON, also a failure
    A client that parses answers breaks on the HTML page of a web server.
    Cause: a proxy or a framework answers before the API does.
    Fix: answer JSON with Content-Type: application/json on every path below /api/v1.
    Good: GET /nothing -> 404 Content-Type: application/json {"status":"not_found","message":"…"}
    Bad: GET /nothing -> 404 Content-Type: text/html <h1>Not Found</h1>

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations             |              |
      | GET /destinations/{destination} |            |
      | GET /syncs/{sync}             |              |
      | GET /syncs/{nobody}           |              |
      | POST /destinations            | {}           |
      | POST /destinations            | {"service    |
      | DELETE /source_types          |              |
      | GET /nothing                  |              |
      | GET /syncs?page=-1            |              |
    Then each answer is JSON, and says so

  @FLT-002 @must @spec @spec-4
  Scenario: Every answer has a status
    Clients look at status before they look at anything else.
    Cause: failures have another form than good answers.
    Fix: put status into every answer.
    Good: 400 {"status":"error","message":"name is required"}
    Bad: 400 {"errors":["name is required"]}

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations             |              |
      | GET /destinations/{destination} |            |
      | GET /syncs/{sync}             |              |
      | PATCH /destinations/{destination} | {"service_connection":{"name":"{name}"}} |
      | GET /syncs/{nobody}           |              |
      | POST /destinations            | {}           |
      | POST /destinations            | {"service    |
      | GET /nothing                  |              |
    Then each answer has a status

  @FLT-003 @must @spec @spec-7.1 @spec-4
  Scenario: A good answer about one resource has a known status
    Clients compare the word; another one is a failure to them.
    Cause: the status is the name of the action, or the HTTP status.
    Fix: answer success, updated or created.
    Good: PATCH /destinations/4 -> 200 {"status":"updated","data":{"id":4,"…":"…"}}
    Bad: PATCH /destinations/4 -> 200 {"status":"ok","data":{"id":4,"…":"…"}}

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations/{destination}                 | |
      | GET /destinations/{destination}/objects/thing   | |
      | PATCH /destinations/{destination}               | {"service_connection":{"name":"{name}"}} |
      | GET /syncs/{sync}                               | |
      | POST /sources/{source}/models                   | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
    Then the status of each answer is one of "success, updated, created"

  @FLT-004 @must @spec @spec-7.1 @spec-4 @differs-error-status-integer @needs-FLT-005
  Scenario: A failure over what is not there has the status not_found or error
    Clients tell a failure by the word, whatever the HTTP status was.
    Cause: the status is the HTTP status, or "failed".
    Fix: answer not_found for what is not there, and error for everything else.
    Good: GET /syncs/9 -> 404 {"status":"not_found","message":"…"}
    Bad: GET /syncs/9 -> 404 {"status":404}

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations/{nobody}                      | |
      | GET /destinations/{destination}/objects/nothing | |
      | PATCH /destinations/{nobody}                    | {"service_connection":{"name":"{name}"}} |
      | GET /syncs/{nobody}                             | |
      | PATCH /sources/{source}/topics/{nobody}         | {"description":"x"} |
    Then the status of each answer is one of "error, not_found"

  @FLT-005 @must @published @spec-7.1
  Scenario: What is not there is answered with 404
    A client that deletes and reads again knows by 404 that it is done.
    Cause: an unknown id ends as an empty 200, or as a fault of the service.
    Fix: answer 404 for every id that is not there.
    Good: GET /syncs/9 -> 404
    Bad: GET /syncs/9 -> 200 {"status":"success","data":null}

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations/{nobody}                      | |
      | GET /destinations/{nobody}/objects              | |
      | GET /destinations/{nobody}/objects/thing        | |
      | GET /destinations/{destination}/objects/nothing | |
      | PATCH /destinations/{nobody}                    | {"service_connection":{"name":"{name}"}} |
      | GET /syncs/{nobody}                             | |
      | GET /syncs/{nobody}/sync_runs                   | |
      | POST /sources/{nobody}/models                   | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
      | POST /sources/{nobody}/topics                   | {"name":"{name}","sample_message":{"id":1}} |
      | PATCH /sources/{source}/topics/{nobody}         | {"description":"x"} |
    Then each call is answered with 404

  @FLT-008 @must @published @spec-7.1
  Scenario: A call that is no good is answered with 400 and the status error
    400 tells a client that trying again is no use.
    Cause: what is wrong with a body is found by the database, and ends as 500; or it is 422.
    Fix: look at the body first, and answer 400 {"status":"error","message":"…"}.
    Good: POST /destinations {} -> 400 {"status":"error","message":"service_connection is required"}
    Bad: POST /destinations {} -> 500

    Given things of a workspace
    When a client makes each call with its own token:
      | POST /destinations                | {} |
      | POST /destinations                | {"service_connection":{"name":"{name}","type":"nothing_like_it","credentials":{}}} |
      | POST /sources/{source}/topics     | {"name":"{name}"} |
      | PATCH /syncs/{sync}               | {"operation":"fly"} |
    Then each call is answered with 400
    And the status of each answer is one of "error"

  @FLT-009 @must @published @spec-7.1 @needs-FLT-008
  Scenario: A call that is no good is told why
    Without a reason people try at random.
    Cause: the reason stands in the log only.
    Fix: say in message what is wrong.
    Good: POST /destinations {} -> 400 {"status":"error","message":"service_connection is required"}
    Bad: POST /destinations {} -> 400 {"status":"error"}

    Given things of a workspace
    When a client makes each call with its own token:
      | POST /destinations                | {} |
      | POST /sources/{source}/topics     | {"name":"{name}"} |
      | PATCH /syncs/{sync}               | {"operation":"fly"} |
    Then each answer says what is wrong in "message"

  @FLT-011 @must @spec @spec-4
  Scenario: A body that is no JSON is turned down
    All bodies are JSON. What cannot be read must not be guessed.
    Cause: a body that cannot be read counts as an empty one.
    Fix: answer 400 and say where the JSON breaks.
    Good: POST /workspaces {"name": -> 400
    Bad: POST /workspaces {"name": -> 500

    Given things of a workspace
    When a client makes each call with its own token:
      | POST /destinations                | {"service_connection": |
      | POST /destinations                | service_connection=1   |
      | POST /destinations                | <xml/>                 |
      | PATCH /destinations/{destination} | {"service_connection":{"name":"x"}}} |
      | PATCH /syncs/{sync}               | {"paused":true         |
      | POST /sources/{source}/topics     | {'name':'x'}           |
    Then each call is turned down

  @FLT-013 @should @published @spec-4
  Scenario: A Content-Type with a parameter is JSON as well
    A published client sends application/json;version=2, others add a charset.
    Cause: the header is compared with "application/json" as a whole.
    Fix: compare the media type without its parameters.
    Good: PATCH /destinations/4 with Content-Type: application/json;version=2 -> 200
    Bad: PATCH /destinations/4 with Content-Type: application/json;version=2 -> 415

    Given things of a workspace
    When a client makes each call with its own token and the Content-Type "application/json;version=2":
      | PATCH /destinations/{destination} | {"service_connection":{"name":"{name}"}} |
    Then each call is answered

  @FLT-015 @should @policy @spec-4
  Scenario: A path that does not exist is answered with 404
    A typing mistake in a path must not look like an empty list.
    Cause: a page for everything catches unknown paths.
    Fix: answer 404 for every path that the API does not have.
    Good: GET /sync -> 404
    Bad: GET /sync -> 200

    When a client makes each call with its own token:
      | GET /nothing               |
      | GET /sync                  |
      | GET /syncs/1/nothing       |
      | POST /nothing              |
    Then each call is answered with 404

  @FLT-017 @must @spec @spec-4 @spec-2
  Scenario: An id in a path is an integer
    Identifiers are integers; text that begins with one is another thing.
    Cause: the id is read up to the first character that is no digit.
    Fix: answer 400 or 404 for everything that is no integer.
    Good: GET /syncs/4x -> 400
    Bad: GET /syncs/4x -> 200 with sync 4

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /syncs/{sync}x                    |
      | GET /syncs/{sync}.5                   |
      | GET /syncs/-{sync}                    |
      | GET /syncs/latest                     |
      | GET /syncs/99999999999999999999       |
      | GET /destinations/{destination}x      |
      | GET /destinations/one/objects         |
    Then each call is turned down

  @FLT-018 @must @spec @spec-2
  Scenario: Identifiers are integers
    Typed clients read them into integers, and fail on anything else.
    Cause: identifiers are written as strings to save JavaScript from large numbers.
    Fix: write every identifier as a JSON integer.
    Good: {"id":4,"sync_id":3}
    Bad: {"id":"4","sync_id":"3"}

    Given things of a workspace
    When the sync runs
    And a client makes each call with its own token:
      | GET /destinations/{destination} |
      | GET /syncs/{sync}               |
      | GET /syncs/{sync}/sync_runs     |
    Then each identifier is an integer

  @FLT-019 @must @spec @spec-2
  Scenario: Times are ISO 8601 strings in UTC
    A time without its zone is read as local time, hours away.
    Cause: times are written as numbers, or as the server's local time.
    Fix: write 2026-01-31T09:30:00Z.
    Good: "created_at":"2026-01-31T09:30:00.000Z"
    Bad: "created_at":"2026-01-31 09:30:00"

    Given things of a workspace
    When the sync runs
    And a client makes each call with its own token:
      | GET /destinations/{destination} |
      | GET /syncs/{sync}               |
      | GET /syncs/{sync}/sync_runs     |
    Then each time is ISO 8601 in UTC

  @FLT-020 @must @spec @spec-2
  Scenario: Field names are in snake case
    A client looks a field up by its name.
    Cause: a library writes camel case by default.
    Fix: write created_at, and not createdAt.
    Good: {"created_at":"…"}
    Bad: {"createdAt":"…"}

    Given things of a workspace
    When the sync runs
    And a client makes each call with its own token:
      | GET /destinations/{destination} |
      | GET /syncs/{sync}               |
      | GET /syncs/{sync}/sync_runs     |
    Then each field name is in snake case

  @FLT-021 @should @policy @spec-7.1
  Scenario: A call that is turned down changes nothing
    A client that sees a failure sends the whole again; half of it is there twice then.
    Cause: a body is stored field by field, and looked at on the way.
    Fix: look at everything first, and store all of it or nothing.
    Good: PATCH /destinations/4 with a good name and bad credentials -> 400, and the name is the old one
    Bad: PATCH /destinations/4 with a good name and bad credentials -> 400, and the name is the new one

    Given things of a workspace
    And what these calls show:
      | GET /destinations/{destination} |
      | GET /syncs/{sync}               |
    When a client makes each call with its own token:
      | PATCH /destinations/{destination} | {"service_connection":{"name":"{name}","credentials":{"webhook_url":7}}} |
      | PATCH /syncs/{sync}               | {"label":"{name}","paused":true,"operation":"fly"} |
    Then these calls show the same as before
