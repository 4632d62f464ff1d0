Feature: Lists
  Every list has one envelope, pages that begin with 1, and the newest record first.

  @LST-001 @must @spec @spec-2.1 @spec-4
  Scenario: Every list is answered with the list envelope
    A client has one piece of code for all lists; a list of another form breaks it.
    Cause: an endpoint answers the bare array, or names the records after the resource.
    Fix: answer {"status":"success","pagination":{…},"data":[…]} for every list.
    Good: GET /syncs -> 200 {"status":"success","pagination":{"total_records":0,"…":"…"},"data":[]}
    Bad: GET /syncs -> 200 {"syncs":[]}

    Given lists that nobody else adds to
    When a client reads each list
    Then each answer is a list envelope

  @LST-002 @must @spec @spec-2.1 @needs-LST-001
  Scenario: Pagination tells its numbers as integers
    Clients compute with these numbers; a string adds "1" and 1 to "11".
    Cause: the numbers are taken from the query as text.
    Fix: write total_records, per_page, page and last_page as JSON integers.
    Good: "pagination":{"total_records":4,"per_page":25,"prev_page":null,"page":1,"next_page":null,"last_page":1}
    Bad: "pagination":{"total_records":"4","per_page":"25","page":"1"}

    Given lists that nobody else adds to
    When a client reads each list
    Then "total_records" of each list is an integer
    And "per_page" of each list is an integer
    And "page" of each list is an integer
    And "last_page" of each list is an integer

  @LST-003 @must @spec @spec-2.1 @needs-LST-002
  Scenario: The pages before and after are told as integers or null
    A client goes on to the page that next_page names, until there is none.
    Cause: the members are left out at the ends, or hold false or an address.
    Fix: write prev_page and next_page in every list, as an integer or as null.
    Good: "pagination":{"prev_page":1,"page":2,"next_page":3,"…":"…"}
    Bad: "pagination":{"prev_page":false,"page":2,"next_page":"/syncs?page=3"}

    Given lists that nobody else adds to
    When a client reads each list page by page
    Then "prev_page" of each list is an integer or null
    And "next_page" of each list is an integer or null

  @LST-004 @must @spec @spec-2.1 @needs-LST-003
  Scenario: total_records counts the records of all pages
    A client tells by it whether it has seen everything.
    Cause: the records of the page are counted.
    Fix: count all records of the list.
    Good: GET /syncs?per_page=2 of 4 syncs -> "total_records":4
    Bad: GET /syncs?per_page=2 of 4 syncs -> "total_records":2

    Given lists that nobody else adds to
    When a client reads each list page by page
    Then "total_records" of each list is right

  @LST-005 @must @published @spec-2.1 @needs-LST-013
  Scenario: next_page is the next page, and null on the last one
    Clients loop while there is a next page. A page after the last one makes them loop for ever.
    Cause: next_page is page + 1 in every answer.
    Fix: answer null on the last page.
    Good: GET /syncs?page=2&per_page=2 of 4 syncs -> "next_page":null
    Bad: GET /syncs?page=2&per_page=2 of 4 syncs -> "next_page":3

    Given lists that nobody else adds to
    When a client reads each list page by page
    Then "next_page" of each list is right

  @LST-007 @must @published @spec-2.1 @needs-LST-013
  Scenario: last_page is the last page that has records
    Some clients stop on it; too small a number hides records from them.
    Cause: the division rounds down, or counts pages from 0.
    Fix: divide the total by the size of a page, and round up.
    Good: GET /syncs?per_page=3 of 4 syncs -> "last_page":2
    Bad: GET /syncs?per_page=3 of 4 syncs -> "last_page":1

    Given lists that nobody else adds to
    When a client reads each list page by page
    Then "last_page" of each list is right

  @LST-009 @must @spec @spec-8 @needs-LST-002
  Scenario: Page 0 is page 1
    Clients that count from 0 begin with it.
    Cause: the offset becomes negative, or the page is refused.
    Fix: treat 0 as 1, also in the answer.
    Good: GET /syncs?page=0 -> "page":1
    Bad: GET /syncs?page=0 -> 400

    Given lists that nobody else adds to
    When a client reads each list with "page=1&per_page=2"
    And a client reads each list with "page=0&per_page=2"
    Then "page" of each list is right
    And each list shows the same records both times

  @LST-010 @must @spec @spec-8 @needs-LST-002 @needs-LST-004
  Scenario: Without per_page a page has 25 records
    A client that reads one page reads as much as is written down.
    Cause: another default than 25.
    Fix: take 25 where per_page is missing.
    Good: GET /destinations/4/objects of 104 objects -> "per_page":25 and 25 records
    Bad: GET /destinations/4/objects of 104 objects -> "per_page":20 and 20 records

    Given lists that nobody else adds to
    When a client reads each list
    Then "per_page" of each list is right
    And each page holds as many records as there are for it

  @LST-012 @must @published @spec-8 @needs-LST-010 @needs-LST-002 @needs-LST-013
  Scenario: More than 100 records for a page mean 100
    The wish is cut, not refused; clients ask for 500 or 1000 to be sure.
    Cause: per_page above the maximum is answered with 400, or with the default.
    Fix: use 100, and say so in per_page.
    Good: GET /syncs?per_page=101 -> 200 "per_page":100
    Bad: GET /syncs?per_page=101 -> 400

    Given lists that nobody else adds to
    When a client reads each list with "per_page=101"
    Then each answer is a list envelope
    And "per_page" of each list is right
    And each page holds as many records as there are for it

  @LST-013 @must @spec @spec-8 @spec-4 @needs-LST-004
  Scenario: A page has as many records as per_page says
    A client that shows ten rows asks for ten.
    Cause: an endpoint does not read per_page.
    Fix: read per_page at every list.
    Good: GET /syncs?per_page=3 of 4 syncs -> 3 records
    Bad: GET /syncs?per_page=3 of 4 syncs -> 4 records

    Given lists that nobody else adds to
    When a client reads each list with "page=1&per_page=3"
    Then "per_page" of each list is right
    And each page holds as many records as there are for it

  @LST-014 @must @spec @spec-8 @spec-4 @needs-LST-005 @needs-LST-004
  Scenario: The pages of a list hold each record once
    A record between two pages is never seen; one on both is counted twice.
    Cause: pages overlap by one, or records of the same time change places between calls.
    Fix: order by creation time and id, and cut without overlap.
    Good: pages [4,3] and [2,1]
    Bad: pages [4,3] and [3,2]

    Given lists that nobody else adds to
    When a client reads each list page by page
    Then each record is on one page

  @LST-015 @must @spec @spec-8 @needs-LST-002
  Scenario: The newest record comes first
    The default order is desc by creation time; a client reads the first page to see what is new.
    Cause: the order of the database is answered.
    Fix: order by creation time, the newest first, unless the client asks for asc.
    Good: GET /syncs -> syncs 4, 3, 2, 1
    Bad: GET /syncs -> syncs 1, 2, 3, 4

    Given lists that nobody else adds to
    When a client reads each list with "per_page=100"
    Then each list stands in the order of creation, the newest first

  @LST-017 @must @spec @spec-8 @needs-LST-015
  Scenario: The order asc puts the oldest record first
    Clients that copy a list read it in this order, so that new records come at the end.
    Cause: order is not read.
    Fix: order by creation time, the oldest first, for order=asc.
    Good: GET /syncs?order=asc -> syncs 1, 2, 3, 4
    Bad: GET /syncs?order=asc -> syncs 4, 3, 2, 1

    Given lists that nobody else adds to
    When a client reads each list with "per_page=100&order=asc"
    Then each list stands in the order of creation, the oldest first

  @LST-020 @must @spec @spec-2.1 @needs-LST-005
  Scenario: The list of users leads to its next page by address
    Older clients follow next instead of counting pages.
    Cause: next is missing, is a path, or loses per_page.
    Fix: answer the whole address of the next page, and null on the last one.
    Good: GET /users?per_page=1 of 2 users -> "next":"https://example.com/api/v1/users?page=2&per_page=1"
    Bad: GET /users?per_page=1 of 2 users -> "next":"?page=2"

    Given lists that nobody else adds to
    Then the member next of "/users" leads to the next page, and ends with null

  @LST-022 @must @published @spec-2.1
  Scenario: The other lists have the same envelope
    Sources, datasets, workspaces and invitations are read by the same code.
    Cause: newer endpoints have another form.
    Fix: use the list envelope everywhere.
    Good: GET /datasets -> 200 {"status":"success","pagination":{"…":"…"},"data":[]}
    Bad: GET /datasets -> 200 []

    Given things of an organization
    When a client reads these lists:
      | /sources                                |
      | /sources/{source}/models                |
      | /datasets                               |
      | /connectors                             |
      | /webhooks                               |
      | /workspaces                             |
      | /workspaces/{workspace}/users           |
      | /invitations                            |
    Then each answer is a list envelope
    And "total_records" of each list is an integer
    And "last_page" of each list is an integer
