Feature: Trust between service and destination
  Certificates, the Auth Token, and URLs that hold secrets.

  @CERT-001 @must @spec @spec-5.2.1 @spec-4.2
  Scenario: A URL without TLS is refused
    Token and records would travel in the clear.
    Cause: any URL is taken.
    Fix: refuse a connection whose URL is not https, but for addresses of this machine.
    Good: webhook_url http://destination.example/rpc -> 400
    Bad: webhook_url http://destination.example/rpc -> 201

    When a client makes a connection with the credentials {"webhook_url":"http://zz-conf.invalid/rpc"}
    Then the connection is refused

  @CERT-002 @must @spec @spec-5.2.1
  Scenario: A certificate of a known authority is accepted
    The author of an endpoint has done what is asked for, intermediate included.
    Cause: only certificates of the service's own authority are accepted, or intermediates are not read.
    Fix: verify the chain that the endpoint sends against the known authorities.
    Good: a chain of two certificates up to a known root -> the connection test passes
    Bad: a chain of two certificates up to a known root -> unknown authority

    When a client connects a destination with a certificate that is good
    Then that destination is called

  @CERT-003 @must @spec @spec-5.2.1
  Scenario: A self-signed certificate is refused
    Anybody can make one in any name: it proves nothing.
    Cause: the certificate is not verified, or not all of it.
    Fix: end the handshake, and say why the connection test has failed.
    Good: a certificate that is self-signed -> the connection test fails, nothing is sent
    Bad: a certificate that is self-signed -> test_connection is called

    Given a destination with a good certificate that the service accepts
    When a client connects a destination with a certificate that is self-signed
    Then that destination is not called

  @CERT-004 @must @spec @spec-5.2.1
  Scenario: A certificate for another name is refused
    Whoever has a certificate for any name at all could stand between.
    Cause: the certificate is not verified, or not all of it.
    Fix: end the handshake, and say why the connection test has failed.
    Good: a certificate that is for another name -> the connection test fails, nothing is sent
    Bad: a certificate that is for another name -> test_connection is called

    Given a destination with a good certificate that the service accepts
    When a client connects a destination with a certificate that is for another name
    Then that destination is not called

  @CERT-009 @must @spec @spec-5.2.1 @clock
  Scenario: A run verifies the certificate as the connection test does
    The certificate that was tested is not the one that stands there a month later.
    Cause: the client of runs is another one than that of the test, and does not verify.
    Fix: verify the certificate in every handshake.
    Good: a certificate that has expired since the connection test -> the run fails, nothing is sent
    Bad: a certificate that has expired since the connection test -> sync_batch is called

    Given a destination with a good certificate that the service accepts
    And a sync of 3 records with operation "upsert"
    And the certificate of the destination expires
    When the sync runs
    Then run 1 is failed
    And that destination is not called

  @CERT-010 @must @spec @spec-5.2.2
  Scenario: The Auth Token comes with every call
    By the token the destination knows who calls, whatever the method.
    Cause: only batches are authorized.
    Fix: send Authorization: Bearer with every call of the connection.
    Good: Authorization: Bearer zz-conf-token in test_connection, list_objects, …, sync_batch
    Bad: get_sync_speed without Authorization

    Given a connection with the credentials {"auth_token":"zz-conf-token-1"}
    And a sync of 3 records with operation "upsert"
    When the sync runs
    Then every call of the service has the header "Authorization" with "Bearer zz-conf-token-1"

  @CERT-011 @must @spec @spec-5.2.2
  Scenario: A changed Auth Token comes with every call from then on
    A token is changed because the old one is known to somebody.
    Cause: clients that were made before the change go on with the old token.
    Fix: read the token anew for every run and planning call.
    Good: the token becomes zz-conf-token-2 -> Authorization: Bearer zz-conf-token-2
    Bad: the token becomes zz-conf-token-2 -> Authorization: Bearer zz-conf-token-1

    Given a connection with the credentials {"auth_token":"zz-conf-token-1"}
    And a sync of 3 records with operation "upsert"
    When the sync runs
    And the Auth Token of the connection becomes "zz-conf-token-2"
    And the source then holds
      | id       | name       |
      | "r00001" | "one anew" |
      | "r00002" | "two anew" |
      | "r00003" | "new three" |
    And the sync runs
    Then every call of the service has the header "Authorization" with "Bearer zz-conf-token-2"

  @CERT-012 @should @policy @spec-5.2.2
  Scenario: Without an Auth Token there is no Authorization header
    An empty token is a wrong one for an endpoint that looks at the header.
    Cause: the header is sent with an empty token.
    Fix: leave the header out.
    Good: no Authorization
    Bad: Authorization: Bearer

    Given a sync of 3 records with operation "upsert"
    When the sync runs
    Then no call of the service has the header "Authorization"

  @CERT-013 @must @spec @spec-5.2.3 @spec-4.2
  Scenario: Secrets in path and query of the URL arrive as they were given
    The destination recognises the service by them, and compares them byte by byte.
    Cause: a library of URLs sorts the query, decodes escapes, or cleans the path.
    Fix: send the target of the request as it stands in the configuration.
    Good: https://host/a%2Fb//c?z=1&a=%7e -> POST /a%2Fb//c?z=1&a=%7e
    Bad: https://host/a%2Fb//c?z=1&a=%7e -> POST /a/b/c?a=%7E&z=1

    When a client makes a connection whose URL ends in "/rpc?z_segment=tr0ub4dor&api_key=k%2Bey&a=&a=2&flag"
    Then the calls of the service go to the URL of the connection
    When a client makes a connection whose URL ends in "/s%2Fcret//hook/"
    Then the calls of the service go to the URL of the connection
    When a client makes a connection whose URL ends in "/%7ehook;v=1?key=a%20b+c%3d%3D"
    Then the calls of the service go to the URL of the connection
