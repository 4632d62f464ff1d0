Feature: Protocol version
  A verdict names the version that it speaks of.

  @VER-001 @info @spec @spec-9
  Scenario: The version of the protocol is noted
    The RPC is versioned, and a verdict is worth only with its version.
    Cause: nothing on the wire names the version.
    Fix: nothing has to change.
    Good: RPC v1, profile v1
    Bad: (a report without its version)

    When the service calls "test_connection"
    Then it is noted which protocol and profile the verdict is for
