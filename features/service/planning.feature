Feature: Planning by the service
  What the service asks a destination, when, and what becomes of the answers.

  @PLAN-001 @must @spec @spec-4.2
  Scenario: A new connection is tested first
    The author of an endpoint sees at once whether the address and the token are right, before anything else is asked.
    Cause: the connection is stored, and the first sync finds out.
    Fix: call test_connection when a connection is made, before list_objects.
    Good: POST /destinations -> test_connection, list_objects, …
    Bad: POST /destinations -> list_objects

    Given a destination
    Then the service calls "test_connection" first

  @PLAN-002 @must @spec @spec-7.2.3 @spec-4.2
  Scenario: A failed connection test shows the message of the destination
    Only the endpoint knows what is wrong behind it, and its words help the user.
    Cause: success is not looked at, or the message is replaced by one of the service.
    Fix: show the connection as failed, with the error_message.
    Good: test_connection -> {"success":false,"error_message":"the key is locked"} -> last_test_succeeded false, "the key is locked"
    Bad: test_connection -> {"success":false,"error_message":"the key is locked"} -> last_test_succeeded true

    When a client connects a destination that answers "test_connection" with each of:
      | {"jsonrpc":"2.0","id":{id},"result":{"success":false,"error_message":"the key is locked"}} |
    Then the connection test has failed
    And the connection test says "the key is locked"

  @PLAN-004 @must @spec @spec-4.2 @spec-1
  Scenario: The objects of the destination are taken over
    Users choose among the objects that the endpoint names.
    Cause: only the first object is kept, or the name is shown for the label.
    Fix: show every entry of list_objects with its name and label.
    Good: {"object_api_name":"thing","label":"A thing"} -> "full_name":"thing","label":"A thing"
    Bad: {"object_api_name":"thing","label":"A thing"} -> "full_name":"thing","label":"thing"

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client lists the objects
    Then 2 destination objects are shown
    And the destination object "thing" is shown with the values:
      | label | "A thing" |
      | allow_custom_fields | false |
    And the destination object "place" is shown with the values:
      | label | "Place" |
      | allow_custom_fields | true |

  @PLAN-005 @must @spec @spec-4.2 @spec-1
  Scenario: The fields of each object are taken over
    Users map to the fields that the endpoint names, with its types and rules.
    Cause: replies that come in parallel are given to the wrong object, or flags are lost.
    Fix: show every entry of list_fields at its object, with label, type and flags.
    Good: {"field_api_name":"zip","type":"string","required":true,…} of place -> zip of place, required_for_mapping true
    Bad: {"field_api_name":"zip","type":"string","required":true,…} of place -> zip of thing

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client lists the objects
    Then 7 destination fields are shown
    And the destination field "id" is shown with the values:
      | label | "The id" |
      | type | "string" |
      | array | false |
      | required_for_mapping | true |
      | createable | true |
      | updateable | true |
    And the destination field "name" is shown with the values:
      | label | "The name" |
      | type | "string" |
      | array | false |
      | required_for_mapping | false |
      | createable | true |
      | updateable | true |
    And the destination field "tags" is shown with the values:
      | label | "The tags" |
      | type | "string" |
      | array | true |
      | required_for_mapping | false |
      | createable | true |
      | updateable | true |
    And the destination field "gone" is shown with the values:
      | label | "The gone" |
      | type | "date" |
      | array | false |
      | required_for_mapping | false |
      | createable | false |
      | updateable | false |
    And the destination field "code" is shown with the values:
      | label | "The code" |
      | type | "integer" |
      | array | false |
      | required_for_mapping | true |
      | createable | true |
      | updateable | true |
    And the destination field "zip" is shown with the values:
      | label | "The zip" |
      | type | "string" |
      | array | false |
      | required_for_mapping | true |
      | createable | true |
      | updateable | true |
    And the destination field "height" is shown with the values:
      | label | "The height" |
      | type | "decimal" |
      | array | false |
      | required_for_mapping | false |
      | createable | true |
      | updateable | true |

  @PLAN-006 @must @spec @spec-4.2
  Scenario: The operations of each object are taken over
    A sync may only do what the object allows.
    Cause: the operations of the first object are taken for all.
    Fix: show the answer to supported_operations at its object.
    Good: thing: {"operations":["upsert","update"]} -> "supported_operations":["upsert","update"]
    Bad: thing: {"operations":["upsert","update"]} -> "supported_operations":["insert","update","upsert"]

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client lists the objects
    Then the destination object "thing" is shown with the values:
      | supported_operations | ["upsert","update"] |
    And the destination object "place" is shown with the values:
      | supported_operations | ["insert"] |

  @PLAN-007 @must @spec @spec-4.2
  Scenario: A sync with an unsupported operation is refused
    The object would refuse every batch of it.
    Cause: the operation is compared with the list of all operations.
    Fix: compare it with supported_operations of the object.
    Good: insert into an object with {"operations":["upsert"]} -> 400
    Bad: insert into an object with {"operations":["upsert"]} -> 201

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client makes a sync of "id, name" with operation "upsert" into "thing"
    Then the sync is made
    When a client makes a sync of "id, name" with operation "insert" into "thing"
    Then the sync is refused

  @PLAN-008 @must @published @spec-4.2
  Scenario: A required field has to be mapped
    The endpoint has said that it takes no record without the field.
    Cause: required is shown, and not asked for.
    Fix: refuse a sync that does not map a required field.
    Good: a sync of code into place, whose zip is required -> 400
    Bad: a sync of code into place, whose zip is required -> 201

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client makes a sync of "code, zip" with operation "insert" into "place"
    Then the sync is made
    When a client makes a sync of "code, height" with operation "insert" into "place"
    Then the sync is refused

  @PLAN-009 @must @spec @spec-4.2
  Scenario: The primary identifier is a field that may be one
    The destination finds its records by the field, and has said by which fields it can.
    Cause: any field is taken for an identifier.
    Fix: refuse a primary identifier that list_fields does not mark.
    Good: identified by {"field_api_name":"name","identifier":false} -> 400
    Bad: identified by {"field_api_name":"name","identifier":false} -> 201

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | thing | A thing | upsert update | id:string:identifier:required name:string tags:string:array gone:date:readonly | |
      | place | Place | insert | code:integer:identifier:required zip:string:required height:decimal | on_write |
    When a client makes a sync of "id, name" with operation "upsert" into "thing"
    Then the sync is made
    When a client makes a sync of "name, id" with operation "upsert" into "thing"
    Then the sync is refused

  @PLAN-010 @must @published @spec-4.2
  Scenario: An object without identifiers takes no sync
    Records that nothing tells apart would be made anew in every run.
    Cause: the first field is taken where none is marked.
    Fix: refuse syncs into an object none of whose fields is an identifier.
    Good: a sync into an object without identifiers -> 400
    Bad: a sync into an object without identifiers -> 201

    Given a destination
    When a client makes a sync of "id, name" with operation "upsert" into "thing"
    Then the sync is made
    Given the destination tells nothing of the field "id"
    And a client refreshes the objects of the destination
    When a client makes a sync of "name, count" with operation "upsert" into "thing"
    Then the sync is refused

  @PLAN-011 @must @spec @spec-4.2 @spec-1
  Scenario: Before a run only setup and planning methods are called
    get_sync_speed and sync_batch belong to the execution: a destination may prepare for records when they come.
    Cause: the speed is asked for when the connection is made.
    Fix: call them in runs alone.
    Good: a connection and a sync are made -> test_connection, list_objects, list_fields, supported_operations
    Bad: a connection is made -> get_sync_speed

    Given a sync of 3 records with operation "upsert"
    Then the service calls no method but "test_connection, list_objects, list_fields, supported_operations"

  @PLAN-013 @must @spec @spec-4.2
  Scenario: Objects, fields and operations are kept between runs
    A destination does not cache them, and may have to ask elsewhere for each. The service keeps them, so that frequent runs cost nothing.
    Cause: every run plans anew.
    Fix: keep what the planning calls have brought, for a time.
    Good: run 1, then run 2: get_sync_speed, sync_batch
    Bad: run 1, then run 2: list_objects, list_fields, supported_operations, get_sync_speed, sync_batch

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    And the source then holds
      | id       | name       |
      | "r00001" | "one anew" |
      | "r00002" | "two anew" |
      | "r00003" | "new three" |
    And the sync runs
    Then no run but the first calls "list_objects, list_fields, supported_operations" before its first batch

  @PLAN-014 @must @spec @spec-4.2 @clock
  Scenario: Old metadata is asked for again
    A field that was added to the destination comes to the users by itself.
    Cause: what the first planning has brought is kept for ever.
    Fix: ask again when what is kept is old.
    Good: list_fields with a new field, a week later -> the field is shown
    Bad: list_fields with a new field, a week later -> the old fields are shown

    Given a destination
    And the destination tells of the field "extra"
    When 168h pass
    Then the service shows the field "extra" of "thing"

  @PLAN-015 @must @published @spec-4.2
  Scenario: Metadata is asked for again on demand
    Who has just added a field to the destination will not wait until the service finds out.
    Cause: the refresh says that it is completed, and shows what was kept.
    Fix: make the planning calls when a client refreshes the objects.
    Good: POST /destinations/7/refresh_objects -> list_objects, list_fields, supported_operations
    Bad: POST /destinations/7/refresh_objects -> no call

    Given a destination
    And the destination tells of the field "extra"
    When a client refreshes the objects of the destination
    Then the service shows the field "extra" of "thing"
