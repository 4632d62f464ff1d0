Feature: Requests to a destination
  Every call of a custom destination is one JSON-RPC request.

  @CALL-001 @must @spec @spec-4.2
  Scenario: Every call is a POST of one JSON-RPC request
    A destination is written against the published envelope, and reads nothing else.
    Cause: a member is left out or has another type.
    Fix: send {"jsonrpc":"2.0","method":…,"params":{…},"id":"…"} with POST.
    Good: POST {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"}
    Bad: POST {"method":"list_objects","id":7}

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of the service is a POST of one JSON-RPC request

  @CALL-002 @must @spec @spec-4.2
  Scenario: Every call has an id of its own
    A destination tells calls apart by their ids.
    Cause: the id is a constant, or counts for each connection anew.
    Fix: make a new id for every request.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"5f0c"} and then {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"thing","label":"Thing"}},"id":"81aa"}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"1"} and then {"jsonrpc":"2.0","method":"list_fields","params":{"object":{"object_api_name":"thing","label":"Thing"}},"id":"1"}

    Given a sync of 250 records with operation "upsert"
    When the sync runs
    Then no two calls of the service have the same id
