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
