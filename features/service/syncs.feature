Feature: Syncs
  A sync is a resource: what a client writes into it is what it reads.

  @SYN-001 @must @spec @spec-2.6 @spec-2
  Scenario: A sync has an id, a status and its times
    Clients keep the id, show the status, and find out by the times what has changed.
    Cause: a field is left out, or the database's own form of a value is passed on.
    Fix: answer id as an integer, status as a string, and both times as ISO 8601 in UTC.
    Good: GET /syncs/309 -> 200 {"status":"success","data":{"id":309,"status":"ready","created_at":"2026-03-04T09:30:00Z","updated_at":"2026-03-04T09:30:00Z","…":"…"}}
    Bad: GET /syncs/309 -> 200 {"status":"success","data":{"id":"309","status":1,"created_at":1772616600,"updated_at":null,"…":"…"}}

    Given a sync
    When a client reads the sync
    Then the answer has these types:
      | field      | type      |
      | id         | integer   |
      | status     | text      |
      | created_at | timestamp |
      | updated_at | timestamp |
