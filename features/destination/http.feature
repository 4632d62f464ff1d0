Feature: HTTP
  Every call is one POST with a synchronous, complete, honest HTTP response.

  @HTTP-001 @must @spec @spec-4.2 @evidence-answers
  @needs-RPC-006
  Scenario: A result comes with a 2xx status
    The service posts to the configured URL. A status that says failure makes it throw the
    result away and retry.
    Cause: the route is registered under another path, or the framework sets the status.
    Fix: answer results with status 200.
    Good: POST / {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> 200 {"jsonrpc":"2.0","id":"7","result":{"success":true}}
    Bad: POST / {"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"} -> 404 {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the service calls every reading method
    Then every HTTP response that holds a result has a 2xx status

  @HTTP-002 @should @published @spec-4.2 @evidence-envelopes
  @needs-RPC-001
  Scenario: Every reply is labelled as JSON
    A wrong Content-Type lets proxies and clients treat the reply as text.
    Cause: the framework's default type is kept.
    Fix: set Content-Type: application/json on results and on errors.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 Content-Type: application/json; charset=utf-8
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 Content-Type: text/html

    When the service calls every reading method
    And the service calls a method that does not exist
    Then every HTTP response that holds an envelope says that it is JSON

  @HTTP-003 @must @spec @spec-4.2 @evidence-responses
  Scenario: Every call is answered in the same response
    The service waits for the reply in this exchange and reads nothing later. An accepted call
    without a reply counts as failed.
    Cause: the work is handed to a queue.
    Fix: do the work first and answer then.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> 200 {"jsonrpc":"2.0","id":"7","result":{"maximum_batch_size":1000,"maximum_parallel_batches":4,"maximum_records_per_second":1000}}
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> 202 {"status":"accepted"}

    When the service calls every method
    Then every HTTP response holds its answer

  @HTTP-004 @should @policy @spec-4.2 @evidence-responses
  Scenario: No call is redirected
    Clients turn a redirected POST into a GET or drop its body, and secrets go to another place.
    Cause: a trailing slash, or http is redirected to https.
    Fix: configure the final URL, or answer at the URL that is called.
    Good: POST / {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> 200 {"jsonrpc":"2.0","id":"7","result":{}}
    Bad: POST / {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> 301 Location: /v1/

    When the service calls every reading method
    Then every HTTP response is no redirect

  @HTTP-005 @should @policy @spec-4.2 @evidence-responses
  @needs-RPC-006
  Scenario: Only POST runs a method
    A GET can be sent by a crawler, a preview or a link. It must not run anything.
    Cause: the route accepts every HTTP method and reads the query.
    Fix: answer 405 to everything but POST.
    Good: GET /?method=test_connection -> 405
    Bad: GET /?method=test_connection -> 200 {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the service calls "test_connection" in each of these ways:
      | GET with the call in the query |
      | GET with the call in the body |
      | PUT |
      | DELETE |
    Then no reply has a result

  @HTTP-006 @must @spec @spec-4.2 @evidence-responses
  Scenario: Every response is complete
    A body that ends before its announced length is a failed call, and the batch is sent again.
    Cause: the length is counted in characters, or a worker dies while it writes.
    Fix: let the framework frame the body.
    Good: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> Content-Length: 119 (119 bytes)
    Bad: {"jsonrpc":"2.0","method":"get_sync_speed","params":{},"id":"7"} -> Content-Length: 200 (119 bytes)

    When the service calls every reading method
    Then every HTTP response is complete

  @HTTP-007 @should @policy @spec-4.2 @evidence-responses
  @needs-RPC-001
  Scenario: Content-Encoding is honest and was offered
    The service decodes what the header says. A wrong label makes the body unreadable.
    Cause: a proxy adds the header, or compresses without looking at Accept-Encoding.
    Fix: compress only by gzip or deflate, only when asked, and label it.
    Good: (Accept-Encoding: gzip) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 Content-Encoding: gzip (gzip bytes)
    Bad: (Accept-Encoding: gzip) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 Content-Encoding: gzip (plain bytes)

    When the service calls "list_objects" in each of these ways:
      | accepting gzip and deflate |
      | accepting identity only |
    Then every HTTP response is encoded as offered and labelled

  @HTTP-008 @should @published @spec-4.2 @evidence-answers
  @needs-RPC-001 @needs-RPC-003
  Scenario: A kept connection serves a second call
    The service reuses connections. A silent close in the middle of the next call is a failed
    call.
    Cause: the worker closes after each reply without saying so, or a timer closes connections that are in use.
    Fix: keep the connection, or announce Connection: close; close only connections that have been idle for seconds.
    Good: (second call on a connection) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: (second call on a connection) {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> (connection closed)

    When the service calls "list_objects" in each of these ways:
      | twice on one connection |
    Then every call is answered

  @HTTP-009 @should @policy @spec-4.2 @evidence-answers
  @needs-RPC-006 @needs-AUTH-001 @needs-CON-005
  Scenario: Usual forms of an HTTP request are accepted
    Proxies in between change the framing and the headers of a request, and the endpoint must
    still answer.
    Cause: the server demands a Content-Length or an exact Content-Type.
    Fix: accept chunked bodies, a charset parameter and Expect: 100-continue.
    Good: Transfer-Encoding: chunked {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 {"jsonrpc":"2.0","id":"7","result":{"objects":[]}}
    Bad: Transfer-Encoding: chunked {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 411 Length Required

    When the service calls "list_objects" in each of these ways:
      | with a chunked body |
      | with charset=utf-8 |
      | with Expect: 100-continue |
    Then every reply has a result

  @HTTP-010 @should @policy @spec-4.2 @evidence-responses
  @needs-RPC-008
  Scenario: An error carries an envelope whatever its status
    The user sees code and message of the envelope. A bare text shows up as an unknown error.
    Cause: an exception reaches the framework.
    Fix: catch exceptions and answer an error object.
    Good: {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"7"} -> 500 {"jsonrpc":"2.0","id":"7","error":{"code":-32602,"message":"Invalid params"}}
    Bad: {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"7"} -> 500 Internal Server Error

    When the service sends each of the bodies:
      | {"jsonrpc":"2.0","method":"list_fields","params":{},"id":"{id}"} |
      | {"jsonrpc":"2.0","method":"list_fields","params":{"object":7},"id":"{id}"} |
    Then every HTTP response holds an envelope

  @HTTP-011 @should @spec @spec-4.2.1 @evidence-responses
  @needs-RPC-003
  Scenario: No reply comes from a cache
    A cached reply has the id of an older call and shows a schema that is gone.
    Cause: a CDN or a proxy caches the URL.
    Fix: send Cache-Control: no-store and switch caching off for the endpoint.
    Good: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 (no Age, no X-Cache)
    Bad: {"jsonrpc":"2.0","method":"list_objects","params":{},"id":"7"} -> 200 Age: 31, X-Cache: HIT

    When the service calls "list_objects" 3 times
    Then every HTTP response is fresh
