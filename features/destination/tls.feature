Feature: TLS
  The service reaches the endpoint over HTTPS with a certificate that is publicly trusted.

  @TLS-001 @must @spec @spec-4.2 @spec-5.2.1 @evidence-handshakes
  Scenario: The URL is https
    Records and secrets cross the internet. The service does not call plain http.
    Cause: the URL of the development server is used.
    Fix: put the endpoint behind TLS.
    Good: https://example.com/
    Bad: http://example.com/

    When the service connects
    Then the connection is https

  @TLS-002 @must @spec @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001
  Scenario: The certificate chains to a trusted root
    Self-signed certificates are prohibited. The service refuses the connection before the first
    call.
    Cause: a self-signed certificate is installed.
    Fix: use a certificate of a well-known authority.
    Good: subject CN=example.com, issuer CN=A public CA
    Bad: subject CN=example.com, issuer CN=example.com

    When the service connects
    Then the certificate chains to a trusted root

  @TLS-003 @must @spec @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001
  Scenario: The certificate names the host
    A certificate for another name is refused before the first call.
    Cause: the virtual host's default certificate is served, or the name is missing from the SANs.
    Fix: add the host of the URL to the subject alternative names.
    Good: host example.com, SAN example.com
    Bad: host example.com, SAN other.invalid

    When the service connects
    Then the certificate names the host

  @TLS-004 @must @spec @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001
  Scenario: The certificate is within its validity
    An expired certificate stops every sync at once.
    Cause: renewal is not automatic, or the clock is wrong.
    Fix: renew the certificate.
    Good: notBefore yesterday, notAfter in 60 days
    Bad: notAfter yesterday

    When the service connects
    Then the certificate is within its validity

  @TLS-005 @must @spec @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001 @needs-TLS-002
  Scenario: The server sends the intermediate certificates
    The service does not fetch missing intermediates. A browser may, so the fault stays hidden.
    Cause: only the leaf file is configured.
    Fix: serve the full chain.
    Good: leaf, intermediate
    Bad: leaf only

    When the service connects
    Then the certificate comes with its intermediates

  @TLS-006 @should @policy @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001
  Scenario: TLS 1.2 or newer and a key of usual strength
    Clients have switched off older versions and short keys.
    Cause: an old server configuration.
    Fix: offer TLS 1.2 and 1.3 and use RSA 2048 or ECDSA.
    Good: TLS 1.3, ECDSA P-256
    Bad: TLS 1.0, RSA-1024

    When the service connects
    Then the connection is TLS 1.2 or newer with a strong key

  @TLS-007 @should @policy @spec-5.2.1 @probe @evidence-attempts
  @needs-TLS-001
  Scenario: Plain http does not answer the protocol
    A second door without TLS leaks records and secrets when a URL is mistyped.
    Cause: the same handler listens on port 80.
    Fix: redirect or refuse on the plain port.
    Good: http://example.com:80/ -> 301
    Bad: http://example.com:80/ -> 200 {"jsonrpc":"2.0","id":"7","result":{"success":true}}

    When the service calls "test_connection" in each of these ways:
      | over plain http on the probe port |
    Then no reply has a result

  @TLS-009 @should @policy @spec-5.2.1 @evidence-handshakes
  @needs-TLS-001 @needs-TLS-004
  Scenario: The certificate is valid for two more weeks
    A certificate that runs out soon stops all syncs on that day.
    Cause: renewal did not run.
    Fix: renew the certificate now.
    Good: notAfter in 60 days
    Bad: notAfter in 3 days

    When the service connects
    Then the certificate is valid for 14 more days
