@needs-RES-001 @needs-RES-002 @needs-RES-004 @needs-RES-005 @needs-SEM-001 @needs-SEM-006
Feature: Data
  A value is stored exactly or its record fails; it is never corrupted.

  @DAT-001 @must @spec @spec-4.2.2 @write @readback-decides @records-30 @each-object @evidence-stored
  Scenario: Unicode text is kept
    Names of people and places are in all scripts. A question mark in their place is
    acknowledged and never repaired.
    Cause: a three-byte character set, or text is normalised.
    Fix: use UTF-8 with four bytes all the way and store text as it is.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"\ud83d\ude80"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"🚀"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"\ud83d\ude80"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"?"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | values that would show "normalise" |
      | string | values that would show "character set" |
    Then every acknowledged record is stored exactly

  @DAT-002 @should @policy @spec-4.2.2 @write @readback-decides @records-6 @each-object @evidence-stored
  @needs-RES-010 @needs-RES-009
  Scenario: Control characters do not crash a batch
    Such characters come out of old databases. One of them must not stop the others.
    Cause: the database driver or a C string ends at NUL.
    Fix: store the text, or fail its record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"a\u0000b"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"a\u0000b"}]},"id":"7"} -> (connection closed)

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "a\\u0000b" |
      | string | values that would show "control characters" |
      | string | "a\\ud800b" |
    Then every acknowledged record is stored exactly

  @DAT-003 @must @spec @spec-4.2.2 @write @readback-required @records-16 @each-object @evidence-stored
  @needs-SEM-007 @needs-SEM-004 @needs-FLD-014
  Scenario: Null stays null
    Null empties a field. As a text it fills it with a wrong value.
    Cause: null is formatted, or skipped because it is empty.
    Fix: write null.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":null}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":null}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":null}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"null"}}],"complete":true}

    Given an object that can create records
    When the service sends 8 new records with the creating operation, with nulls by turns
    Then every acknowledged record is stored exactly
    When the service sends the same records with every changing operation, with nulls by turns
    Then every acknowledged record is stored exactly

  @DAT-004 @must @spec @spec-4.2.2 @write @readback-decides @records-24 @each-object @evidence-stored
  Scenario: Large integers are exact
    Keys of large systems are beyond 2^53. Rounded, two customers have one key.
    Cause: JSON numbers are read as floating point.
    Fix: read integers with 64 bits.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","age":9007199254740993}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"age":9007199254740993}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","age":9007199254740993}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"age":9007199254740992}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | integer | values that would show "clamp" |
      | integer | values that would show "round" |
      | integer | values that would show "cast" |
      | integer | 9223372036854775807 |
    Then every acknowledged record is stored exactly

  @DAT-005 @must @published @spec-4.2 @write @readback-required @records-30 @each-object @evidence-stored
  Scenario: Decimals are exact
    Decimals are money. They are sent as text so that nobody rounds them.
    Cause: the text is read as floating point.
    Fix: use a decimal type.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","balance":"123456789012345.678"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"balance":"123456789012345.678"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","balance":"123456789012345.678"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"balance":"123456789012345.67"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | decimal | values that would show "round" |
      | decimal | values that would show "clamp" |
      | decimal | values that would show "locale" |
      | decimal | "100.50" |
      | decimal | "12345678901234567890.123456789012345678" |
    Then every acknowledged record is stored exactly

  @DAT-006 @should @policy @spec-4.2 @write @readback-required @records-6 @each-object @evidence-stored
  @needs-RES-010 @needs-RES-009
  Scenario: Extreme floats do not crash a batch
    One odd measurement must not stop the others.
    Cause: the conversion overflows.
    Fix: store the number, or fail its record.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","score":1e400}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"record not present"}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","score":1e400}]},"id":"7"} -> (connection closed)

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | float | 1.7976931348623157e308 |
      | float | 5e-324 |
      | float | -0.0 |
      | float | 1e400 |
    Then every acknowledged record is stored exactly

  @DAT-007 @must @published @spec-4.2 @write @readback-required @records-24 @each-object @evidence-stored
  Scenario: Dates are kept
    A birthday that moves by a day is wrong for ever.
    Cause: the date becomes a moment in a local zone.
    Fix: keep a date as a date.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","born":"2024-02-29"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"born":"2024-02-29"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","born":"2024-02-29"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"born":"2024-02-28"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | date | values that would show "zone" |
      | date | values that would show "calendar" |
      | date | values that would show "locale" |
      | date | values that would show "cast" |
    Then every acknowledged record is stored exactly

  @DAT-008 @must @published @spec @spec-2 @write @readback-required @records-30 @each-object @evidence-stored
  Scenario: Moments are kept in UTC
    Moments are sent in UTC. Read in a local zone they shift by hours.
    Cause: the trailing Z is ignored.
    Fix: parse the zone and store UTC.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","seen_at":"2021-03-29T16:32:23Z"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"seen_at":"2021-03-29T16:32:23Z"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","seen_at":"2021-03-29T16:32:23Z"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"seen_at":"2021-03-29T14:32:23Z"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | date_time | values that would show "zone" |
      | date_time | values that would show "range" |
      | date_time | values that would show "round moments" |
      | date_time | values that would show "locale" |
      | date_time | "2021-03-29T16:32:23.456Z" |
    Then every acknowledged record is stored exactly

  @DAT-009 @must @published @spec-4.2 @write @readback-required @records-4 @each-object @evidence-stored
  Scenario: Booleans are booleans
    The text "false" is true in many languages.
    Cause: the value is formatted.
    Fix: keep true and false.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","active":false}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"active":false}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","active":false}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"active":"false"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | boolean | values that would show "cast" |
    Then every acknowledged record is stored exactly

  @DAT-010 @must @published @spec-4.2 @write @readback-required @records-40 @each-object @evidence-stored
  Scenario: Arrays keep their items and their order
    A list joined by commas cannot be taken apart again.
    Cause: the array is formatted into a text column.
    Fix: store a list.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","tags":["a,b","c"]}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"tags":["a,b","c"]}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","tags":["a,b","c"]}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"tags":"a,b,c"}}],"complete":true}

    Given an object with an array field
    And an object that can create records
    When the service sends new records with these values with the creating operation:
      | array | [] |
      | array | one item |
      | array | 25 items, the last one as the first |
      | integers | [2147483648, -2147483649, 0] |
      | integers | [9007199254740993, 9223372036854775807] |
      | decimals | ["123456789012345.678", "0.1234567", "-0.5"] |
      | floats | [0.30000000000000004, 1234567.5, 0.0] |
      | booleans | [false, true, true] |
      | dates | ["2024-12-30", "1970-01-01", "2021-03-04"] |
      | date_times | ["2021-07-15T12:00:00Z", "1970-01-01T00:00:00Z", "2038-01-19T03:14:08Z"] |
      | texts | values that would show "items" |
    Then every acknowledged record is stored exactly

  @DAT-011 @must @spec @spec-4.2.2 @write @readback-decides @records-160 @each-object @evidence-stored
  @needs-DUR-001 @needs-DUR-005
  Scenario: Strings are kept as they are
    A leading zero is part of a postcode, and a quote is part of a name.
    Cause: text is trimmed, read as a number or put into a statement.
    Fix: store text as it is, with bound parameters.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"00042"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"00042"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"00042"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"zip":"42"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "" |
      | string | "{65536}" |
      | string | "constructor" |
      | string | "__proto__" |
      | string | "toString" |
      | string | values that would show "trim" |
      | string | values that would show "line ends" |
      | string | values that would show "case" |
      | string | values that would show "escape" |
      | string | values that would show "unescape" |
      | string | values that would show "decode entities" |
      | string | values that would show "template" |
      | string | values that would show "cast" |
      | string | values that would show "null markers" |
      | string | values that would show "statement" |
      | string | values that would show "truncate" |
      | string | values of the format that a name asks for |
    Then every acknowledged record is stored exactly

  @DAT-012 @should @policy @spec-8 @write @records-300 @first-object @evidence-accepted
  @needs-OPS-004
  Scenario: Bodies of some megabytes are accepted
    Body parsers stop at 100 KB by default. A full batch is larger than that.
    Cause: the default limit of the framework.
    Fix: raise the limit, or declare a smaller batch.
    Good: (4 MB) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: (200 KB) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","zip":"1"}]},"id":"7"} -> 413 Payload Too Large

    Given an object
    When the service sends 300 new records with any operation, in bodies of 0.2, 1 and 4 MB
    Then every batch is processed

  @DAT-013 @must @jsonrpc @spec-4.2 @write @readback-decides @records-2 @each-object @evidence-stored
  @needs-DAT-001
  Scenario: An escaped character is the character
    JSON may write é as \u00e9. Both are the same text.
    Cause: strings are cut out of the JSON without decoding.
    Fix: parse the body with a JSON library.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"caf\u00e9"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"café"}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","name":"caf\u00e9"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"name":"caf\\u00e9"}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "caf\\u00e9" |
      | string | "café" |
    Then every acknowledged record is stored exactly

  @DAT-014 @should @policy @spec-4.2 @write @records-80 @each-object @evidence-accepted
  @needs-OPS-007 @needs-RES-020 @needs-DUP-003 @needs-FLD-011
  Scenario: A value of the declared type is accepted
    The service knows the declared type and nothing else. What the endpoint refuses beyond it
    stays in every run of the sync as a failed record.
    A refusal that names its limit or the values that are taken is a rule of the business, and noted only.
    Cause: the column or a validation takes less than the declared type.
    Fix: widen the column, or say in the message which values are taken.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","city":"Köln"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","city":"Köln"}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":false,"error_message":"invalid character"}]}}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | string | "conf {u}" | plain text |
      | string | "caf\\u00e9 {u}" | text outside ASCII |
      | string | "\\ud83d\\ude80 {u}" | an emoji |
      | string | "say 'so' & <b>{u}</b>" | text with quotes and markup |
      | string | "two\\nlines {u}" | text of two lines |
      | string | "{u} {300}" | text of 300 characters |
      | string | "" | empty text |
      | integer | -{d} | a negative number |
      | integer | 0 | zero |
      | integer | 5000{d} | an integer beyond 32 bits |
      | decimal | "-{d}.5" | a negative decimal |
      | decimal | "{d}.1234567" | a decimal of seven places |
      | float | -0.{d} | a negative fraction |
      | date | "1969-12-31" | a date before 1970 |
      | date_time | "2038-01-19T03:14:08Z" | a moment after 2038 |
      | boolean | false | false |
      | array | [] | an empty array |
      | any | null | null |
    Then every value of the declared type is accepted

  @DAT-015 @must @published @spec-4.2 @write @readback-required @records-24 @each-object @evidence-stored
  Scenario: Floats keep their full width
    A float is sent with up to 17 significant digits. A coordinate that loses them lies in
    another street.
    Cause: the column has single precision, or the number is formatted with few digits.
    Fix: use double precision and do not format the number.
    Good: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","score":0.1}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"score":0.1}}],"complete":true}
    Bad: {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"upsert","…":"…"},"records":[{"email":"a@x.io","score":0.1}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"score":0.10000000149011612}}],"complete":true}

    Given an object that can create records
    When the service sends new records with these values with the creating operation:
      | float | values that would show "round" |
      | float | values that would show "clamp" |
      | float | values that would show "cast" |
      | float | 0.30000000000000004 |
    Then every acknowledged record is stored exactly

  @DAT-016 @must @published @spec-4.2 @write @readback-required @records-45 @each-object @evidence-stored
  @needs-DAT-010 @needs-SEM-007 @needs-SEM-004 @needs-FLD-014 @needs-DAT-003
  Scenario: A changed array replaces the old one
    A list that shrinks in the source must shrink in the destination. An item that stays is a
    subscription that was cancelled.
    Cause: the rows of a list are only added or overwritten, or an empty list is taken for no value.
    Fix: remove the old items in the transaction that writes the new ones.
    Good: (a exists with tags ["x","y","z"]) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","tags":["v"]}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"tags":["v"]}}],"complete":true}
    Bad: (a exists with tags ["x","y","z"]) {"jsonrpc":"2.0","method":"sync_batch","params":{"sync_plan":{"operation":"update","…":"…"},"records":[{"email":"a@x.io","tags":["v"]}]},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"record_results":[{"identifier":"a@x.io","success":true}]}}, then read-back {"records":[{"identifier":"a@x.io","count":1,"fields":{"tags":["v","y","z"]}}],"complete":true}

    Given an object with an array field
    And an object that can create records
    And an object that accepts "update" or "upsert"
    When the service sends 10 new records with the creating operation, with arrays of each length
    Then every acknowledged record is stored exactly
    When the service sends the same records with every changing operation, with arrays of each length
    Then every acknowledged record is stored exactly
    When the service sends new records with these values with the creating operation:
      | texts | values that are nearly those of "items" |
    Then every acknowledged record is stored exactly
    When the service sends the same records with nearly the same values with operation "update" if there is one
    Then every acknowledged record is stored exactly
    When the service sends the same records with nearly the same values with operation "upsert" if there is one
    Then every acknowledged record is stored exactly
