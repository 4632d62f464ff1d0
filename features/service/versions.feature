Feature: Versions
  The version stands in the address, and what is deprecated goes on working.

  @DEP-001 @should @policy @spec-9 @spec-4
  Scenario: Another version in the address is not this one
    The version is carried in the base address. A client that asks for another one has to learn that it is not there.
    Cause: the segment with the version is a wildcard.
    Fix: serve the API below /api/v1 only.
    Good: GET /api/v2/syncs -> 404
    Bad: GET /api/v2/syncs -> 200 {"status":"success","pagination":{"…":"…"},"data":[]}

    When a client calls these addresses of the same host with its token:
      | /api/v2/syncs |
      | /api/v0/syncs |
      | /api/syncs    |
      | /syncs        |
    Then none of them answers as the API

  @DEP-002 @must @spec @spec-9 @spec-4
  Scenario: The deprecated creation of a model still works
    Deprecated is not gone. Older clients create nothing else.
    Cause: the endpoint was taken away with its announcement.
    Fix: keep the endpoint until the version changes.
    Good: POST /sources/2/models {"name":"a","query":"SELECT 1","description":""} -> {"status":"created","data":{"id":7,"…":"…"}}
    Bad: POST /sources/2/models {"name":"a","query":"SELECT 1","description":""} -> 410

    When a client makes each call with its own token:
      | POST /sources/{source}/models | {"name":"{this_name}","query":"SELECT 1 AS id","description":"zz"} |
    Then each call is answered
    And the status of each answer is one of "created"
    And data of each answer has the values:
      | name | "{this_name}" |

  @DEP-003 @should @policy @spec-9 @needs-DEP-002
  Scenario: The deprecated creation of a model says that it is deprecated
    A client that is not told finds out when it is gone.
    Cause: only the documentation says so.
    Fix: send the header Deprecation (RFC 9745) with the answer.
    Good: POST /sources/2/models -> 201 with Deprecation: @1672531200
    Bad: POST /sources/2/models -> 201 without Deprecation

    When a client makes each call with its own token:
      | POST /sources/{source}/models | {"name":"{name}","query":"SELECT 1 AS id","description":""} |
    Then each answer says that something is deprecated

  @DEP-004 @should @policy @spec-9
  Scenario: A sync with a deprecated field is told so
    The fields failed_run_notifications_enabled, failed_record_notifications_enabled,
    failed_record_notifications_threshold_percent and high_water_mark_attributes have followers.
    Cause: only the documentation says so.
    Fix: send the header Deprecation (RFC 9745) when a request has such a field.
    Good: POST /syncs {"failed_run_notifications_enabled":true,"…":"…"} -> 200 with Deprecation: @1672531200
    Bad: POST /syncs {"failed_run_notifications_enabled":true,"…":"…"} -> 200 without Deprecation

    When a client creates a sync with each of these:
      | field                                         | value |
      | failed_run_notifications_enabled              | false |
      | failed_record_notifications_enabled           | false |
      | failed_record_notifications_threshold_percent | 50    |
    Then each request says that something is deprecated

  @DEP-005 @should @policy @spec-9
  Scenario: What is not deprecated is not called so
    A mark on everything is read by nobody.
    Cause: the header is sent with every answer.
    Fix: send the header Deprecation only where something is deprecated.
    Good: GET /syncs -> 200 without Deprecation
    Bad: GET /syncs -> 200 with Deprecation: @1672531200

    Given things of a workspace
    When a client makes each call with its own token:
      | GET /destinations                 | |
      | GET /destinations/{destination}   | |
      | PATCH /destinations/{destination} | {"service_connection":{"name":"{name}"}} |
      | GET /syncs                        | |
      | GET /syncs/{sync}                 | |
      | GET /source_types                 | |
    Then no answer says that something is deprecated

  @DEP-006 @must @published @spec-9 @spec-4.1
  Scenario: Datasets do what models did
    Whoever is told to leave models must find the same in datasets: a query with a name.
    Cause: the replacement is announced, and not there.
    Fix: create, show, change and delete datasets.
    Good: POST /datasets {"name":"a","type":"sql","source_id":2,"query":"SELECT 1"} -> 201 {"status":"created","data":{"id":7,"…":"…"}}
    Bad: POST /datasets {"name":"a","type":"sql","source_id":2,"query":"SELECT 1"} -> 404

    When a client makes each call with its own token:
      | POST /datasets       | {"name":"{this_name}","type":"sql","source_id":{source},"query":"SELECT 1 AS id"} |
    And a client makes each call with its own token:
      | GET /datasets/{made} | |
    Then data of each answer has the values:
      | name  | "{this_name}"    |
      | query | "SELECT 1 AS id" |
