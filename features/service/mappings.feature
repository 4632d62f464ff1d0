Feature: Mappings
  A mapping takes a column, a constant or a template to a field of the destination.

  @MAP-001 @must @spec @spec-2.7
  Scenario: A mapping shows where its values come from and where they go
    Tools that keep syncs as code compare mappings with what they have written.
    Cause: mappings are shown as pairs of names.
    Fix: show from with type and data, to, and is_primary_identifier as a boolean.
    Good: {"from":{"type":"column","data":"id"},"to":"id","is_primary_identifier":true}
    Bad: {"from":"id","to":"id","is_primary_identifier":1}

    Given a sync
    Then the sync shows:
      | field    | value |
      | mappings | [{"from": {"type": "column", "data": "id"}, "to": "id", "is_primary_identifier": true}, {"from": {"type": "column", "data": "name"}, "to": "name"}] |

  @MAP-002 @must @spec @spec-2.7
  Scenario: A column goes to the field that it is mapped to
    Names of columns and fields are seldom the same.
    Cause: values go to the field of the column's name, or by position.
    Fix: write the value of from.data into the field of to.
    Good: column "family" to field "given": {"records":[{"id":"r00001","given":"Lovelace","family":"Ada"}]}
    Bad: column "family" to field "given": {"records":[{"id":"r00001","given":"Ada","family":"Lovelace"}]}

    Given a destination with these fields:
      | name   | type   | is         |
      | id     | string | identifier |
      | given  | string | ordinary   |
      | family | string | ordinary   |
    And these rows in the source:
      | key      | given | family     |
      | "r00001" | "Ada" | "Lovelace" |
    And a sync with:
      | field    | value |
      | mappings | [{"from": {"type": "column", "data": "key"}, "to": "id", "is_primary_identifier": true}, {"from": {"type": "column", "data": "given"}, "to": "family"}, {"from": {"type": "column", "data": "family"}, "to": "given"}] |
    When the sync runs
    Then the record "r00001" in the destination has:
      | field  | value      |
      | given  | "Lovelace" |
      | family | "Ada"      |

  @MAP-003 @must @spec @spec-2.7
  Scenario: Only what is mapped is sent
    Fields that no mapping names belong to somebody else.
    Cause: the whole row is sent, or every field of the object.
    Fix: send the mapped fields, and no others.
    Good: id and ratio are mapped: {"records":[{"id":"r00001","ratio":0.5}]}
    Bad: id and ratio are mapped: {"records":[{"id":"r00001","ratio":0.5,"name":"Ann"}]}

    Given these rows in the source:
      | id       | name  | ratio | other |
      | "r00001" | "Ann" | 0.5   | "x"   |
    And a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "column", "data": "ratio"}, "to": "ratio"}] |
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, ratio" in "params.records.*"

  @MAP-004 @must @spec @spec-2.7
  Scenario: A constant keeps its value and its type
    A number that comes back as text is a difference in every plan of a tool.
    Cause: constants are stored as text.
    Fix: store and show {"value":…,"basic_type":…} as it was sent.
    Good: {"from":{"type":"constant_value","data":{"value":7,"basic_type":"number"}}}
    Bad: {"from":{"type":"constant_value","data":{"value":"7"}}}

    When a client creates a sync with each of these:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "constant_value", "data": {"value": "always", "basic_type": "text"}}, "to": "name"}] |
      | mappings | [{id_mapping}, {"from": {"type": "constant_value", "data": {"value": 7, "basic_type": "number"}}, "to": "count"}] |
      | mappings | [{id_mapping}, {"from": {"type": "constant_value", "data": {"value": false, "basic_type": "boolean"}}, "to": "active"}] |
      | mappings | [{id_mapping}, {"from": {"type": "constant_value", "data": {"value": "2026-03-04T09:30:00Z", "basic_type": "datetime"}}, "to": "moment"}] |
    Then every request is accepted
    And every sync shows what it was given

  @MAP-005 @must @spec @spec-2.7
  Scenario: A constant stands in every record
    It marks the records of this sync; one without it belongs to nobody.
    Cause: values that repeat are left out.
    Fix: write the constant into each record, in the type of the field.
    Good: {"records":[{"id":"r00001","name":"always","count":7},{"id":"r00002","name":"always","count":7}]}
    Bad: {"records":[{"id":"r00001","name":"always","count":7},{"id":"r00002"}]}

    Given a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "constant_value", "data": {"value": "always", "basic_type": "text"}}, "to": "name"}, {"from": {"type": "constant_value", "data": {"value": 7, "basic_type": "number"}}, "to": "count"}] |
    When the sync runs
    Then every record in the destination has:
      | field | value    |
      | name  | "always" |
      | count | 7        |

  @MAP-007 @must @spec @spec-2.7
  Scenario: A template is rendered for every record
    Templates join and clean values on their way.
    Cause: the text of the template is sent, or its filters are passed over.
    Fix: render the template with the row as record.
    Good: "{{ record['name'] | upcase }}" and name "Ann": {"records":[{"id":"r00001","name":"ANN"}]}
    Bad: "{{ record['name'] | upcase }}" and name "Ann": {"records":[{"id":"r00001","name":"Ann"}]}

    Given these rows in the source:
      | id       | name  | count |
      | "r00001" | "Ann" | 3     |
    And a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "liquid_template", "data": {"liquid_template": "{{ record['name'] \| upcase }}, {{ record['count'] \| plus: 1 }}"}}, "to": "name"}] |
    When the sync runs
    Then the record "r00001" in the destination has:
      | field | value    |
      | name  | "ANN, 4" |

  @MAP-008 @must @spec @spec-2.7
  Scenario: A template is read as an object
    The data of a template is {"liquid_template":…}; another shape is a difference for ever.
    Cause: the text is shown bare.
    Fix: show the object, however the template was written.
    Good: {"from":{"type":"liquid_template","data":{"liquid_template":"{{ record['name'] }}"}}}
    Bad: {"from":{"type":"liquid_template","data":"{{ record['name'] }}"}}

    When a client creates a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "liquid_template", "data": {"liquid_template": "{{ record['name'] }}"}}, "to": "name"}] |
    Then every request is accepted
    And every sync shows what it was given

  @MAP-010 @should @published @spec-2.7
  Scenario: A template that cannot work is refused
    Templates are parsed strictly, and may name columns that exist.
    Cause: templates are parsed when records are made.
    Fix: parse the template and look for its columns when the sync is configured.
    Good: "{{ record['ID' }}" -> 400 {"status":"error","message":"Liquid syntax error: Expected close_square but found end_of_string"}
    Bad: "{{ record['ID' }}" -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with each of these:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "liquid_template", "data": {"liquid_template": "{{ record['name' }}"}}, "to": "name"}] |
      | mappings | [{id_mapping}, {"from": {"type": "liquid_template", "data": {"liquid_template": "{% if record['name'] %}x"}}, "to": "name"}] |
      | mappings | [{id_mapping}, {"from": {"type": "liquid_template", "data": {"liquid_template": "{{ record['nomen'] }}"}}, "to": "name"}] |
    Then every request is refused

  @MAP-011 @must @spec @spec-2.7
  Scenario: A nested field is named with dots
    The dot leads into an object of the destination.
    Cause: names are cleaned before they are stored.
    Fix: keep the dots, and write the value into the field.
    Good: to "address.city": {"records":[{"id":"r00001","address.city":"Graz"}]}
    Bad: to "address.city": {"records":[{"id":"r00001","address_city":"Graz"}]}

    Given a destination with these fields:
      | name         | type   | is          |
      | id           | string | identifier  |
      | address.city | string | ordinary   |
    And these rows in the source:
      | id       | town   |
      | "r00001" | "Graz" |
    When a client creates a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "column", "data": "town"}, "to": "address.city"}] |
    Then every request is accepted
    And every sync shows what it was given
    When the sync runs
    Then the record "r00001" in the destination has:
      | field        | value  |
      | address.city | "Graz" |

  @MAP-012 @must @spec @spec-4.2
  Scenario: A sync has exactly one primary identifier
    One field matches records of source and destination. With none or two, nothing can be matched.
    Cause: the first mapping is taken, or the last one.
    Fix: refuse mappings without is_primary_identifier, and with several.
    Good: no mapping with is_primary_identifier -> 400 {"status":"error","message":"must have one mapping with is_primary_identifier true"}
    Bad: no mapping with is_primary_identifier -> 200 {"status":"created","data":{"sync_id":4545}}

    Given a destination with these fields:
      | name  | type   | is          |
      | id    | string | identifier  |
      | name  | string | identifier  |
    When a client creates a sync with each of these:
      | field    | value |
      | mappings | [{"from": {"type": "column", "data": "id"}, "to": "id"}, {"from": {"type": "column", "data": "name"}, "to": "name"}] |
      | mappings | [{id_mapping}, {"from": {"type": "column", "data": "name"}, "to": "name", "is_primary_identifier": true}] |
      | mappings | [] |
    Then every request is refused

  @MAP-014 @must @spec @spec-2.7
  Scenario: A mapping from something unknown is refused
    A value of an unknown kind cannot be made.
    Cause: what is unknown is taken for a column.
    Fix: refuse every from.type that is not known.
    Good: {"from":{"type":"expression","data":"name"}} -> 400 {"status":"error","message":"unknown value \"expression\""}
    Bad: {"from":{"type":"expression","data":"name"}} -> 200 {"status":"created","data":{"sync_id":4545}}

    When a client creates a sync with each of these:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "expression", "data": "name"}, "to": "name"}] |
      | mappings | [{id_mapping}, {"from": {"type": "", "data": "name"}, "to": "name"}] |
    Then every request is refused

  @MAP-019 @must @spec @spec-4 @spec-2.7
  Scenario: An update replaces the mappings
    The list in the update is the list of the sync.
    Cause: new mappings are added, and old ones stay.
    Fix: store the list as it came, and send by it from the next run on.
    Good: PATCH {"mappings":[id, count]}, then {"records":[{"id":"r00001","count":1}]}
    Bad: PATCH {"mappings":[id, count]}, then {"records":[{"id":"r00001","name":"Ann"}]}

    Given these rows in the source:
      | id       | name  | n |
      | "r00001" | "Ann" | 1 |
    And a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "column", "data": "name"}, "to": "name"}] |
    When a client updates the sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "column", "data": "n"}, "to": "count"}] |
    Then every request is accepted
    And every sync shows what it was given
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, count" in "params.records.*"

  @MAP-020 @must @published @spec-2.7
  Scenario: Values arrive in the type of their field
    A destination is told the types of its fields and relies on them.
    Cause: the types of the source's driver are passed on.
    Fix: send integers and floats as numbers, decimals, dates and moments as strings, booleans as booleans.
    Good: {"records":[{"id":"r00001","count":42,"price":"1234.5","ratio":0.5,"active":true,"day":"2026-03-04","moment":"2026-03-04T09:30:00Z"}]}
    Bad: {"records":[{"id":"r00001","count":"42","price":1234.5,"ratio":0.5,"active":1,"day":"2026-03-04","moment":"2026-03-04 09:30:00"}]}

    Given these rows in the source:
      | id       | count | price    | ratio | active | day          | moment                 |
      | "r00001" | 42    | "1234.5" | 0.5   | true   | "2026-03-04" | "2026-03-04T09:30:00Z" |
    And a sync
    When the sync runs
    Then the record "r00001" in the destination has:
      | field  | value                  |
      | count  | 42                     |
      | price  | "1234.5"               |
      | ratio  | 0.5                    |
      | active | true                   |
      | day    | "2026-03-04"           |
      | moment | "2026-03-04T09:30:00Z" |

  @MAP-021 @must @published @spec-2.7
  Scenario: A null is sent as null
    A value that is gone from the source must go from the destination.
    Cause: empty values are left out of records.
    Fix: send null, unless the mapping says otherwise.
    Good: name is NULL: {"records":[{"id":"r00001","name":null}]}
    Bad: name is NULL: {"records":[{"id":"r00001"}]}

    Given these rows in the source:
      | id       | name |
      | "r00001" | null |
    And a sync
    When the sync runs
    Then every call of "sync_batch" has exactly the members "id, name" in "params.records.*"

  @MAP-024 @should @published @spec-2.7
  Scenario: A record can carry the number of its run
    With it a record is traced back to the run that has written it.
    Cause: the number is taken when the sync is made.
    Fix: write the id of the run into fields mapped from sync_metadata.
    Good: run 602: {"records":[{"id":"r00001","count":602}]}
    Bad: run 602: {"records":[{"id":"r00001","count":601}]}

    Given a sync with:
      | field    | value |
      | mappings | [{id_mapping}, {"from": {"type": "sync_metadata", "data": "sync_run_id"}, "to": "count"}] |
    When the sync runs
    Then every record in the destination has:
      | field | value |
      | count | {run} |

  @MAP-025 @must @spec @spec-2.7
  Scenario: A lookup is kept as it was written
    Tools that keep syncs as code compare mappings with what they have written.
    Cause: the two fields of a lookup are not stored.
    Fix: store and show lookup_object and lookup_field.
    Good: {"to":"account","lookup_object":"Account","lookup_field":"External_ID__c"}
    Bad: {"to":"account","lookup_object":null,"lookup_field":null}

    Given an object with references
    When a client creates a sync with:
      | field    | value            |
      | mappings | {lookup_mapping} |
    Then every request is accepted
    And every sync shows what it was given
