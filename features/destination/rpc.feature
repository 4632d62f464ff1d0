Feature: RPC envelope
  Every reply is one JSON-RPC 2.0 envelope: the service reads nothing else.

  @RPC-001 @must @spec @spec-4.2 @evidence-responses
  @needs-HTTP-003 @needs-HTTP-006
  Scenario: Every reply is one JSON value in UTF-8
    The service parses the body as one JSON document. Anything else fails the whole call with an
    unknown error, and the batch is sent again.
    Cause: a proxy or framework page, a debug print or a wrong charset reaches the body.
    Fix: write one JSON object encoded as UTF-8 and nothing before or after it.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> <html><body>It works!</body></html>

    When the service calls every reading method
    Then every reply is one JSON value in UTF-8

  @RPC-002 @must @spec @spec-4.2 @evidence-envelopes
  @needs-RPC-005
  Scenario: Every reply says jsonrpc "2.0"
    The member marks the envelope. A client that checks it drops the reply otherwise.
    Cause: the envelope is built by hand in each branch, or with a number.
    Fix: write "jsonrpc":"2.0" as a string on results and on errors.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":2.0,"id":"7","result":{"objects":[]}}

    When the service calls every reading method
    And the service calls a method that does not exist
    Then every reply has "jsonrpc" equal to "2.0"

  @RPC-003 @must @spec @spec-4.2 @evidence-envelopes
  @needs-RPC-005
  Scenario: Every reply has the id of its request
    The service matches a reply to its call by the id, in value and in type. A changed id makes
    the reply unusable.
    Cause: the id is parsed as a number, normalised, cut to a column width or a constant.
    Fix: copy the id of the request into the reply without looking at it.
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"007"} -> {"jsonrpc":"2.0","id":"007","result":{"success":true}}
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"007"} -> {"jsonrpc":"2.0","id":7,"result":{"success":true}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"{uuid}"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"007"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"1e3"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":" padded "} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"{300}"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"say \\"hi\\" \\u005c"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"\\ud83d\\ude80"} |
      | {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"e\\u0301"} |
    Then every reply has the id of its request

  @RPC-004 @must @spec @spec-4.2 @evidence-envelopes
  @needs-RPC-005
  Scenario: No reply has both a result and an error
    The presence of "error" means that the call failed. A reply with both keys, even with a null
    error, is read as a failure by strict clients.
    Cause: the reply is a fixed structure that prints every member.
    Fix: leave out "error" in a success and "result" in a failure; null is not absent.
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true},"error":null}

    When the service calls every reading method
    And the service calls a method that does not exist
    Then every reply has not both "result" and "error"

  @RPC-005 @must @spec @spec-7.2.1 @evidence-envelopes
  @needs-RPC-014
  Scenario: Every reply has a result or an error
    Without the correct keys the service fails the call with an unknown error and nobody sees
    the cause.
    Cause: the handler returns its data without the envelope.
    Fix: put the data under "result", or a failure under "error".
    Good: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7"}

    When the service calls every reading method
    Then every reply has "result" or "error"

  @RPC-006 @must @spec @spec-4.2 @evidence-answers
  @needs-RPC-004
  Scenario: Every result is an object
    The service reads named members of the result. It finds none in an array, a string or null.
    Cause: the handler returns the bare list or nothing.
    Fix: wrap the value, as in {"objects":[…]}.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":[]}

    When the service calls every reading method
    Then every reply has an object as result

  @RPC-007 @must @spec @jsonrpc @spec-7.2.2 @evidence-errors
  @needs-RPC-005
  Scenario: Every error has an integer code and a message
    Code and message are what the user sees in the interface when the endpoint fails. Without
    them the user sees an unknown error.
    Cause: the exception text is put under "error" as it is.
    Fix: answer "error":{"code":-32000,"message":"what went wrong"}.
    Good: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"Method not found"}}
    Bad: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":"Method not found"}

    When the service calls a method that does not exist
    Then every error has an integer code and a message

  @RPC-008 @must @jsonrpc @spec-4.2 @evidence-responses
  @needs-RPC-004 @needs-RPC-007 @needs-RPC-003
  Scenario: An unknown method is answered by an error
    A result for a method that does not exist would make the service believe that the call was
    carried out.
    Cause: the dispatcher falls back to a default answer, or the framework answers with its own page.
    Fix: answer code -32601 with the id of the request.
    Good: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"Method not found"}}
    Bad: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":false}}

    When the service calls methods that do not exist, of several shapes
    Then every reply is an error that answers its request

  @RPC-009 @should @jsonrpc @spec-4.2 @evidence-responses
  @needs-RPC-008
  Scenario: An unknown method has the code -32601
    The code tells a missing method from a failed one, so that the user is not sent looking for
    a fault in the data.
    Cause: one code is used for every exception.
    Fix: map an unknown method to -32601.
    Good: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"Method not found"}}
    Bad: {"jsonrpc":"2.0","method":"no_such_method","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32000,"message":"Method not found"}}

    When the service calls a method that does not exist
    Then every error has the code -32601

  @RPC-010 @should @jsonrpc @spec-4.2 @evidence-responses
  @needs-RPC-008
  Scenario: Malformed JSON is answered by the code -32700 and a null id
    A body that was cut on the way must fail at once. An endpoint that hangs or answers a result
    hides the loss.
    Cause: the body is read without a check of its end, or parsed leniently.
    Fix: answer code -32700 with "id":null when the body does not parse.
    Good: {"jsonrpc":"2.0", -> {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}
    Bad: {"jsonrpc":"2.0", -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"test_connection","params":{ |
    Then every error has the code -32700 and a null id

  @RPC-011 @should @jsonrpc @spec-4.2 @evidence-responses
  @needs-RPC-008
  Scenario: A wrong envelope has the code -32600
    A call without a method name must not be guessed, or data goes where nobody sent it.
    Cause: a missing member is filled with a default.
    Fix: check "jsonrpc" and "method" first and answer code -32600.
    Good: {"jsonrpc":"2.0","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32600,"message":"Invalid Request"}}
    Bad: {"jsonrpc":"2.0","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","params":{},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":7,"params":{},"id":"{id}"} |
      | {"method":"test_connection","params":{},"id":"{id}"} |
    Then every error has the code -32600

  @RPC-012 @should @jsonrpc @spec-4.2 @evidence-responses
  @needs-RPC-008 @needs-HTTP-010
  Scenario: Missing or wrong params are answered by an error
    An empty list for a request that was never understood looks like an object without fields,
    and mappings are lost.
    Cause: missing params are read as empty, or the code that reads them fails.
    Fix: check the params of each method and answer code -32602.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"Invalid params"}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"fields":[]}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":"list_fields","params":{"object":7},"id":"{id}"} |
    Then every reply is an error that answers its request

  @RPC-013 @should @policy @spec-4.2 @evidence-answers
  @needs-RPC-006 @needs-AUTH-001 @needs-CON-005
  Scenario: Unknown extra members are ignored
    The protocol may grow. An endpoint that refuses a member that it does not know stops working
    on that day.
    Cause: the request is decoded strictly.
    Fix: read the members that are known and ignore the others.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{"zz":1},"id":"7","zz":1} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{"zz":1},"id":"7","zz":1} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"unknown member zz"}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"list_objects","params":{"zz_unknown":1},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"{id}","zz_unknown":1} |
    Then every reply has a result

  @RPC-014 @must @spec @spec-4.2 @evidence-envelopes
  @needs-RPC-001
  Scenario: Every reply is an object and not an array
    The service sends single calls and looks for "result" in the top-level object. It finds
    nothing in an array.
    Cause: the library answers in JSON-RPC batch form.
    Fix: answer a single request by a single object.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> [{"jsonrpc":"2.0","id":"7","result":{"objects":[]}}]

    When the service calls every reading method
    Then every reply is an object

  @RPC-015 @should @policy @spec-4.2 @evidence-envelopes
  @needs-RPC-001
  Scenario: No reply has duplicate keys
    Parsers disagree about which of two equal keys counts, so the service may read the other
    one.
    Cause: the JSON is put together from strings.
    Fix: use a JSON encoder.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1},"result":{"maximum_batch_size":1000}}

    When the service calls every reading method
    Then every reply has unique keys

  @RPC-016 @should @jsonrpc @spec-4.2 @evidence-answers
  @needs-RPC-006 @needs-AUTH-001 @needs-CON-005
  Scenario: The form of the request JSON does not matter
    Order of keys, spaces and escapes are free in JSON and change with the version of the
    sender.
    Cause: the request is read by patterns and not by a JSON parser.
    Fix: parse the body with a JSON library.
    Good: {"id":"7", "params":{}, "method":"list\u005fobjects", "jsonrpc":"2.0"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: {"id":"7", "params":{}, "method":"list\u005fobjects", "jsonrpc":"2.0"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"Method not found"}}

    When the service sends each of the bodies:
      | {"id":"{id}","params":{},"method":"list_objects","jsonrpc":"2.0"} |
      | { "jsonrpc" : "2.0" ,  "method" : "list_objects" , "params" : { } , "id" : "{id}" } |
      | {"jsonrpc":"2.0","method":"list\\u005fobjects","params":{},"id":"{id}"} |
    Then every reply has a result

  @RPC-017 @info @published @spec-4.2
  @needs-RPC-005
  Scenario: Extra top-level keys are noted
    Published examples echo "method" beside the result. The service tolerates extra keys; the
    report lists them.
    Cause: the sample code of the protocol is used as it is.
    Fix: nothing has to change.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","method":"list_objects","id":"7","result":{"objects":[]}}
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> []

    When the service calls every reading method
    Then it is noted which extra top-level keys the replies have

  @RPC-018 @info @policy @spec-4.2
  @needs-RPC-005
  Scenario: Array batches and notifications are noted
    The service never sends them. How the endpoint treats them is recorded only.
    Cause: JSON-RPC libraries differ here.
    Fix: nothing has to change.
    Good: [{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"}] -> [{"jsonrpc":"2.0","id":"7","result":{"success":true}}]
    Bad: [{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"}] -> (connection closed)

    When the service sends each of the bodies:
      | [{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"{id}"}] |
      | {"jsonrpc":"2.0","method":"test_connection","params":{}} |
    Then it is noted how each body is answered

  @RPC-019 @should @policy @spec-4.2 @evidence-responses
  @needs-RPC-008
  Scenario: Method names are exact
    A name that is nearly right is a fault of the caller. Guessing it hides the fault until a
    real method has that name.
    Cause: names are folded to lower case or trimmed.
    Fix: compare the method name as it is.
    Good: {"jsonrpc":"2.0","method":"List_Objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","error":{"code":-32601,"message":"Method not found"}}
    Bad: {"jsonrpc":"2.0","method":"List_Objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"List_Objects","params":{},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":"list_objects ","params":{},"id":"{id}"} |
    Then no reply has a result
