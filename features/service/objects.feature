Feature: Destination objects and fields
  What an endpoint tells in its planning calls is shown as objects with fields.

  @DOB-001 @must @spec @spec-2.3
  Scenario: An object shows its fields with their types
    API clients decode objects into fixed types before they offer them for a sync.
    Cause: a view leaves a field out, or writes null for an empty list.
    Fix: give every field of the table in the list, in the fetch and inside of the destination.
    Good: {"label":"Orders","full_name":"order","supported_operations":["upsert"],"allow_custom_fields":false,"allow_case_sensitive_fields":true,"advanced_configuration_field_definitions":[],"supports_field_ordering":false,"can_be_sync_destination":true,"fields":[],"configurable_field_definitions":{}}
    Bad: {"label":"Orders","full_name":"order","supported_operations":"upsert","fields":null}

    Given a connection
    When a client looks at the objects in every way
    Then every destination object shown has the members:
      | label                                    | string          |
      | full_name                                | string          |
      | supported_operations                     | array of string |
      | allow_custom_fields                      | boolean         |
      | allow_case_sensitive_fields              | boolean         |
      | advanced_configuration_field_definitions | array           |
      | supports_field_ordering                  | boolean         |
      | can_be_sync_destination                  | boolean         |
      | fields                                   | array           |
      | configurable_field_definitions           | map of string   |

  @DOB-002 @must @spec @spec-2.5
  Scenario: A field shows what can be done with it
    Clients check mappings against the fields before they make a sync.
    Cause: members that are false or empty are left out.
    Fix: give every member of the table for every field.
    Good: {"label":"Number","full_name":"number","createable":true,"updateable":false,"operations":["overwrite"],"array":false,"preserve_values_supported":false,"required_for_mapping":true,"can_be_upsert_key":true,"can_be_update_key":true,"can_be_insert_key":true,"can_be_reference_key":false,"lookup_object":"","type":"string"}
    Bad: {"label":"Number","full_name":"number","createable":1,"type":"string"}

    Given a connection
    When a client looks at the objects in every way
    Then every destination field shown has the members:
      | label                     | string                  |
      | full_name                 | string                  |
      | createable                | boolean                 |
      | updateable                | boolean                 |
      | operations                | array of string         |
      | array                     | boolean                 |
      | preserve_values_supported | boolean                 |
      | required_for_mapping      | boolean                 |
      | can_be_upsert_key         | boolean                 |
      | can_be_update_key         | boolean                 |
      | can_be_insert_key         | boolean                 |
      | can_be_reference_key      | boolean                 |
      | lookup_object             | optional string or null |
      | type                      | string                  |

  @DOB-004 @must @spec @spec-4
  Scenario: An object is fetched by its full_name
    Clients read one object to check a sync, and know nothing but its name.
    Cause: the object is looked up by its label or by its place.
    Fix: answer 200 {"status":"success","data":{"full_name":…}} with the object of that full_name.
    Good: GET /destinations/7/objects/order -> 200 {"status":"success","data":{"full_name":"order"}}
    Bad: GET /destinations/7/objects/order -> 200 {"status":"success","data":{"full_name":"customer"}}

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | order | customer | upsert | |  |
      | customer | order | upsert | |  |
    When a client looks at the objects in every way
    Then every object of the list is found under its full_name

  @DOB-005 @must @spec @spec-4 @spec-2.3
  Scenario: A full_name of any characters works in the path
    Names of objects come from foreign systems: they have spaces, slashes and letters of any language.
    Cause: the path is split after decoding, or decoded twice, or not at all.
    Fix: split the path first, then decode each segment once.
    Good: GET /destinations/7/objects/sales%2F2026 -> 200 {"status":"success","data":{"full_name":"sales/2026"}}
    Bad: GET /destinations/7/objects/sales%2F2026 -> 404

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | order items | Items | upsert | |  |
      | sales/2026 | Sales | upsert | |  |
      | Größe | Sizes | upsert | |  |
      | 50%25 | Shares | upsert | |  |
      | a+b | Sums | upsert | |  |
      | what? | Question | upsert | |  |
      | part#1 | Parts | upsert | |  |
      | dbo.Orders | Table | upsert | |  |
    When a client looks at the objects in every way
    Then every object of the list is found under its full_name

  @DOB-006 @must @published @spec-4
  Scenario: An object that does not exist is answered with 404
    Clients tell a misspelt name from a broken connection by it.
    Cause: the first object, or an empty one, is answered.
    Fix: answer 404.
    Good: GET /destinations/7/objects/zz_nothing -> 404 {"status":"not_found","message":"…"}
    Bad: GET /destinations/7/objects/zz_nothing -> 200 {"status":"success","data":null}

    Given a connection
    When a client makes each call with its own token:
      | GET /destinations/{destination}/objects/zz_nothing |  |
      | GET /destinations/{destination}/objects/THING |  |
    Then each call is answered with 404

  @DOB-010 @must @published @spec-2.5
  Scenario: A required field is required for mapping
    A sync without the field could never write a record.
    Cause: the flag is taken from createable, or from the identifier.
    Fix: set required_for_mapping where list_fields says required, and nowhere else.
    Good: list_fields -> {"fields":[{"field_api_name":"name","required":true,…}]}, "fields":[{"full_name":"name","required_for_mapping":true}]
    Bad: list_fields -> {"fields":[{"field_api_name":"name","required":true,…}]}, "fields":[{"full_name":"name","required_for_mapping":false}]

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | order | Orders | upsert update insert | number:string:identifier:required second:integer:identifier:required name:string:required note:string |  |
    When a client looks at the objects in every way
    Then the destination field "number" is shown with the values:
      | required_for_mapping | true |
    And the destination field "second" is shown with the values:
      | required_for_mapping | true |
    And the destination field "name" is shown with the values:
      | required_for_mapping | true |
    And the destination field "note" is shown with the values:
      | required_for_mapping | false |

  @DOB-011 @must @spec @spec-4.2 @spec-2.5
  Scenario: Only identifiers can be keys
    A field that is not unique would join records that do not belong together.
    Cause: every required or text field is offered as a key.
    Fix: set can_be_upsert_key, can_be_update_key and can_be_insert_key to false where identifier is false.
    Good: list_fields -> {"fields":[{"field_api_name":"name","identifier":false,…}]}, "fields":[{"full_name":"name","can_be_upsert_key":false}]
    Bad: list_fields -> {"fields":[{"field_api_name":"name","identifier":false,…}]}, "fields":[{"full_name":"name","can_be_upsert_key":true}]

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | order | Orders | upsert update insert | number:string:identifier:required name:string:required pieces:integer |  |
    When a client looks at the objects in every way
    Then the destination field "name" is shown with the values:
      | can_be_upsert_key | false |
      | can_be_update_key | false |
      | can_be_insert_key | false |
    And the destination field "pieces" is shown with the values:
      | can_be_upsert_key | false |
      | can_be_update_key | false |
      | can_be_insert_key | false |

  @DOB-013 @must @spec @spec-2.3
  Scenario: The answer to a change shows more of every object
    Clients that change a connection learn there how records are identified, and what may be created.
    Cause: the answer to a change shares its shape with the fetch.
    Fix: give primary_identifier_mapping_attributes, supported_custom_field_types and is_audience_destination in the answer of PATCH.
    Good: PATCH /destinations/7 -> {"data":{"objects":[{"primary_identifier_mapping_attributes":{"upsert":{"required":true,"hide_destination_key":false,"notes":null},"mirror":{"required":true,"hide_destination_key":false,"notes":null}},"supported_custom_field_types":[],"is_audience_destination":false}]}}
    Bad: PATCH /destinations/7 -> {"data":{"objects":[{"full_name":"order"}]}}

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | order | Orders | upsert | | on_write |
      | customer | Customers | mirror | |  |
    When a client saves the destination
    Then every destination object shown has the members:
      | primary_identifier_mapping_attributes.upsert.required             | boolean        |
      | primary_identifier_mapping_attributes.upsert.hide_destination_key | boolean        |
      | primary_identifier_mapping_attributes.upsert.notes                | string or null |
      | primary_identifier_mapping_attributes.mirror.required             | boolean        |
      | primary_identifier_mapping_attributes.mirror.hide_destination_key | boolean        |
      | primary_identifier_mapping_attributes.mirror.notes                | string or null |
      | supported_custom_field_types                                      | array          |
      | is_audience_destination                                           | boolean        |
    And every custom field type shown has the members:
      | type  | string  |
      | array | boolean |

  @DOB-014 @must @published @spec-2.3
  Scenario: Fields can be made where the endpoint makes them on write
    Syncs of all properties need it, and mappings to new fields.
    Cause: can_create_fields is not read.
    Fix: set allow_custom_fields where can_create_fields is "on_write", and nowhere else.
    Good: list_objects -> {"objects":[{"object_api_name":"order","label":"Orders","can_create_fields":"on_write"}]}, "allow_custom_fields":true
    Bad: list_objects -> {"objects":[{"object_api_name":"order","label":"Orders","can_create_fields":"on_write"}]}, "allow_custom_fields":false

    Given a destination with these objects:
      | object | label | operations | fields | creates |
      | open | Open | upsert | | on_write |
      | closed | Closed | upsert | |  |
    When a client looks at the objects in every way
    Then the destination object "open" is shown with the values:
      | allow_custom_fields | true |
    And the destination object "closed" is shown with the values:
      | allow_custom_fields | false |

  @DOB-016 @must @spec @spec-2.2 @spec-2.3
  Scenario: An object is the same wherever it is shown
    Clients read objects from the list, one by one, or with their destination, and expect one truth.
    Cause: the views are filled by different code.
    Fix: show objects by the same code in the list, in the fetch and inside of the destination.
    Good: GET /destinations/7 -> {"data":{"objects":[{"full_name":"order","label":"Orders"}]}}, GET /destinations/7/objects/order -> {"data":{"full_name":"order","label":"Orders"}}
    Bad: GET /destinations/7 -> {"data":{"objects":[{"full_name":"order","label":"order"}]}}, GET /destinations/7/objects/order -> {"data":{"full_name":"order","label":"Orders"}}

    Given a connection
    When a client looks at the objects in every way
    Then an object is the same wherever it is shown

  @DOB-017 @must @spec @spec-2.4
  Scenario: Advanced configuration is described field by field
    Clients make a form of the definitions, and send back what it holds.
    Cause: members are named after the form, or numbers are written as texts.
    Fix: give name, type, label, input_type, placeholder and sort_order for every field.
    Good: {"name":"membership_days","type":"integer","label":"Membership in days","input_type":"text","placeholder":"1 to 540","default":540,"sort_order":2}
    Bad: {"name":"membership_days","type":"integer","label":"Membership in days","sort_order":"2"}

    Given a connection to each emulated application
    When a client lists the objects
    Then every advanced configuration field shown has the members:
      | name             | string                   |
      | type             | string                   |
      | label            | string                   |
      | input_type       | string                   |
      | placeholder      | string                   |
      | sort_order       | integer                  |
      | required         | optional boolean         |
      | supported_values | optional array of string |

  @DOB-018 @must @spec @spec-2.4
  Scenario: Defaults and choices fit their definitions
    A form that begins with a value of another type, or without choices, cannot be sent.
    Cause: defaults are kept as texts; choices are kept elsewhere.
    Fix: write default as a value of the type, and supported_values for every dropdown.
    Good: {"name":"write_mode","type":"string","input_type":"dropdown","default":"update_rows","supported_values":["update_rows","replace"]}
    Bad: {"name":"header_row","type":"integer","input_type":"text","default":"1"}

    Given a connection to each emulated application
    When a client lists the objects
    Then every default of the advanced configuration agrees with its type
    And every dropdown of the advanced configuration agrees with its values

  @DOB-019 @must @spec @spec-2.3
  Scenario: The configurable fields are mapped to their types
    Clients check advanced_configuration of a sync against this map.
    Cause: the map is not kept in step with the definitions.
    Fix: give every definition's name with its type in configurable_field_definitions.
    Good: "advanced_configuration_field_definitions":[{"name":"membership_days","type":"integer"}],"configurable_field_definitions":{"membership_days":"integer"}
    Bad: "advanced_configuration_field_definitions":[{"name":"membership_days","type":"integer"}],"configurable_field_definitions":{}

    Given a connection to each emulated application
    When a client lists the objects
    Then every definition of the advanced configuration agrees with its map
