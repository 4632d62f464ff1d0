Feature: Organization
  An organization has workspaces, users, and invitations to both.

  @ORG-002 @must @spec @spec-2.14
  Scenario: A workspace shows its fields
    Typed clients read every field.
    Cause: a field is missing, or empty ones are left out.
    Fix: answer all fields of a workspace, an empty list as [].
    Good: "data":{"id":7,"name":"A","organization_id":1,"created_at":"…","notification_emails":[]}
    Bad: "data":{"id":7,"name":"A"}

    When a client makes each call with its own token:
      | POST /workspaces | {"name":"{this_name}","return_workspace_api_key":true} |
    Then data of each answer has the members:
      | id                  | integer         |
      | name                | string          |
      | organization_id     | integer         |
      | created_at          | timestamp       |
      | notification_emails | array of string |
    And data of each answer has the values:
      | name | "{this_name}" |

  @ORG-003 @must @spec @spec-4.1 @spec-2.14
  Scenario: The key of a new workspace is answered when it is asked for
    This is the only moment in which a program can get it.
    Cause: return_workspace_api_key is not read.
    Fix: put api_key into the answer when return_workspace_api_key is true.
    Good: POST /workspaces {"name":"A","return_workspace_api_key":true} -> "api_key":"secret-token:…"
    Bad: POST /workspaces {"name":"A","return_workspace_api_key":true} -> no api_key

    When a client makes each call with its own token:
      | POST /workspaces | {"name":"{name}","return_workspace_api_key":true} |
    Then data of each answer has the members:
      | api_key | string |

  @ORG-004 @must @spec @spec-4 @spec-2.14
  Scenario: The key of a workspace is answered only when it is asked for
    A key that nobody asked for ends up in logs. The default of return_workspace_api_key is false.
    Cause: the key is part of every answer about the workspace.
    Fix: leave api_key out unless return_workspace_api_key is true.
    Good: POST /workspaces {"name":"A"} -> no api_key
    Bad: POST /workspaces {"name":"A"} -> "api_key":"secret-token:…"

    When a client makes each call with its own token:
      | POST /workspaces                | {"name":"{name}"}                                  |
      | POST /workspaces                | {"name":"{name}","return_workspace_api_key":false} |
      | GET /workspaces                 |                                                    |
      | GET /workspaces/{made}          |                                                    |
    Then no answer has the text "api_key"

  @ORG-005 @must @spec @spec-4
  Scenario: A workspace needs a name
    The name is required; nobody finds a workspace that has none.
    Cause: the name is not looked at.
    Fix: answer 400 when name is missing.
    Good: POST /workspaces {} -> 400 {"status":"error","message":"name is required"}
    Bad: POST /workspaces {} -> 201

    When a client makes each call with its own token:
      | POST /workspaces | {}                                |
      | POST /workspaces | {"name":null}                     |
      | POST /workspaces | {"return_workspace_api_key":true} |
    Then each call is turned down

  @ORG-006 @must @spec @spec-2.14
  Scenario: The name of a workspace is unique within the organization
    Two workspaces of one name cannot be told apart by people.
    Cause: names are not compared, or in another case only.
    Fix: refuse a name that another workspace of the organization has.
    Good: POST /workspaces {"name":"A"} twice -> 201, then 409
    Bad: POST /workspaces {"name":"A"} twice -> 201, then 201

    When a client makes each call with its own token:
      | POST /workspaces | {"name":"{this_name}"} |
    And a client makes each call with its own token:
      | POST /workspaces | {"name":"{this_name}"} |
    Then each call is turned down

  @ORG-008 @must @spec @spec-4 @spec-2.14 @needs-ORG-002
  Scenario: A workspace keeps the addresses for its alerts
    Alerts go to these addresses; a lost one is an alert that nobody reads.
    Cause: notification_emails is stored elsewhere than it is read.
    Fix: answer the addresses as they were sent.
    Good: "notification_emails":["a@example.com","b@example.com"]
    Bad: "notification_emails":[]

    When a client makes each call with its own token:
      | POST /workspaces        | {"name":"{this_name}","notification_emails":["a@example.com","b@example.com"]} |
      | GET /workspaces/{made}  | |
    Then data of each answer has the values:
      | name                | "{this_name}"                     |
      | notification_emails | ["a@example.com","b@example.com"] |

  @ORG-010 @must @spec @spec-2.13 @spec-3
  Scenario: An open invitation shows its fields, and that nobody has claimed it
    Typed clients read every field, and tell by claimed_at whether the person came.
    Cause: fields without a value are left out, or hold a time from the beginning.
    Fix: answer all fields, claimed_at and claimed_by_id as null until the invitation is claimed.
    Good: "data":{"id":7,"email":"a@example.com","created_at":"…","created_by_id":3,"claimed_at":null,"claimed_by_id":null,"role":"member","associated_workspace_invitations":[]}
    Bad: "data":{"id":7,"email":"a@example.com"}

    When a client makes each call with its own token:
      | POST /invitations | {"email":"{this_email}","role":"member"} |
    Then data of each answer has the members:
      | id                               | integer   |
      | email                            | string    |
      | created_at                       | timestamp |
      | created_by_id                    | integer   |
      | claimed_at                       | null      |
      | claimed_by_id                    | null      |
      | role                             | string    |
      | associated_workspace_invitations | array     |
    And data of each answer has the values:
      | email | "{this_email}" |
      | role  | "member"       |

  @ORG-012 @must @spec @spec-4
  Scenario: A role in the organization is admin or member
    A role that nobody knows gives rights that nobody has thought of.
    Cause: the role is stored as it comes.
    Fix: refuse every other role.
    Good: POST /invitations {"email":"a@example.com","role":"owner"} -> 400
    Bad: POST /invitations {"email":"a@example.com","role":"owner"} -> 200

    Given things of an organization
    When a client makes each call with its own token:
      | POST /invitations               | {"email":"{email}","role":"owner"} |
      | POST /invitations               | {"email":"{email}","role":"viewer"} |
      | POST /invitations               | {"email":"{email}","role":"king"} |
      | PATCH /invitations/{invitation} | {"role":"editor"} |
    Then each call is turned down

  @ORG-013 @must @spec @spec-4.1 @spec-2.13 @needs-ORG-010
  Scenario: An invitation names the workspaces that it is for
    One invitation to the organization brings a person into several workspaces.
    Cause: the workspaces of the call are read and not shown, or only the first is.
    Fix: answer an entry of associated_workspace_invitations for each workspace of the call.
    Good: "associated_workspace_invitations":[{"id":9,"workspace_id":7,"role":"editor"}]
    Bad: "associated_workspace_invitations":[]

    Given two workspaces
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{workspace},"role":"editor"},{"id":{second_workspace},"role":"viewer"}]} |
    Then data of each answer has the values:
      | associated_workspace_invitations | [{"workspace_id":{workspace},"role":"editor"},{"workspace_id":{second_workspace},"role":"viewer"}] |
    And data of each answer has the members:
      | associated_workspace_invitations.0.id | integer |
      | associated_workspace_invitations.1.id | integer |

  @ORG-014 @must @spec @spec-4.1 @spec-4
  Scenario: An invitation names only workspaces that exist
    A person who is invited to a workspace that is not there waits for it in vain.
    Cause: the ids are stored unchecked.
    Fix: refuse the invitation when one of its workspaces does not exist.
    Good: POST /invitations {"…":"…","workspaces":[{"id":9,"role":"viewer"}]} -> 400
    Bad: POST /invitations {"…":"…","workspaces":[{"id":9,"role":"viewer"}]} -> 200

    Given things of an organization
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{nobody},"role":"viewer"}]} |
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{workspace},"role":"viewer"},{"id":{nobody},"role":"viewer"}]} |
    Then each call is turned down

  @ORG-015 @must @spec @spec-4.1
  Scenario: An invitation names only workspaces of its organization
    Whoever may invite to another organization's workspace reads its data.
    Cause: the workspaces are looked up by id alone.
    Fix: look for the workspaces within the organization of the token.
    Good: POST /invitations with a workspace of another organization -> 400
    Bad: POST /invitations with a workspace of another organization -> 200

    Given an organization of its own
    And another organization with a workspace
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{foreign_workspace},"role":"viewer"}]} |
      | POST /workspaces/{foreign_workspace}/invitations | {"emails":["{email}"],"role":"viewer"} |
    Then each call is turned down

  @ORG-017 @must @spec @spec-4 @spec-3 @needs-ORG-010
  Scenario: The role of an open invitation can be changed
    A mistake in the role is put right before the person comes.
    Cause: the update is answered and not stored.
    Fix: store the role, and answer 200 {"status":"updated","data":{…}}.
    Good: PATCH /invitations/7 {"role":"admin"} -> {"status":"updated","data":{"id":7,"role":"admin","…":"…"}}
    Bad: PATCH /invitations/7 {"role":"admin"} -> {"status":"updated","data":{"id":7,"role":"member","…":"…"}}

    Given things of an organization
    When a client makes each call with its own token:
      | PATCH /invitations/{invitation} | {"role":"admin"} |
    Then the status of each answer is one of "updated"
    And data of each answer has the values:
      | id   | {invitation} |
      | role | "admin"      |

  @ORG-018 @must @spec @spec-2.13 @spec-3
  Scenario: A claimed invitation tells when and by whom it was claimed
    Clients tell by it who has come.
    Cause: the claim makes a user, and leaves the invitation as it was.
    Fix: set claimed_at and claimed_by_id with the claim.
    Good: "claimed_at":"2026-01-31T09:30:00.000Z","claimed_by_id":12
    Bad: "claimed_at":null,"claimed_by_id":null after the claim

    Given an organization of its own
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member"} |
    And the invited person claims the invitation to the organization
    And a client makes each call with its own token:
      | GET /invitations/{made} | |
    Then data of each answer has the members:
      | claimed_at    | timestamp |
      | claimed_by_id | integer   |

  @ORG-019 @must @spec @spec-3 @needs-ORG-017
  Scenario: The role of a claimed invitation cannot be changed
    The person is a user by then; an invitation that says something else misleads.
    Cause: the state of the invitation is not looked at.
    Fix: refuse the update once the invitation is claimed.
    Good: PATCH /invitations/7 {"role":"admin"} after the claim -> 409
    Bad: PATCH /invitations/7 {"role":"admin"} after the claim -> 200 {"status":"updated"}

    Given an organization of its own
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member"} |
    And the invited person claims the invitation to the organization
    And a client makes each call with its own token:
      | PATCH /invitations/{made} | {"role":"admin"} |
    Then each call is turned down
    And the invited person has the role "member" in the organization

  @ORG-021 @must @spec @spec-4.1
  Scenario: Who claims an invitation is a member of each workspace that it names
    Otherwise the person comes into an organization in which there is nothing to see.
    Cause: the claim makes a user of the organization only.
    Fix: make the person a member of each workspace, with the role given for it.
    Good: POST /invitations {"…":"…","workspaces":[{"id":7,"role":"editor"}]}, claim -> editor in workspace 7
    Bad: POST /invitations {"…":"…","workspaces":[{"id":7,"role":"editor"}]}, claim -> not in workspace 7

    Given an organization of its own
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{workspace},"role":"editor"}]} |
    And the invited person claims the invitation to the organization
    Then the invited person has the role "member" in the organization
    And the invited person has the role "editor" in the workspace

  @ORG-022 @must @spec @spec-4.1
  Scenario: A member of the organization is added to the workspaces at once
    Who is a member already has nothing to claim.
    Cause: the member gets an invitation like a stranger, and waits for a mail.
    Fix: add the member to each workspace of the call.
    Good: POST /invitations {"email":"member@example.com","…":"…","workspaces":[{"id":7,"role":"operator"}]} -> operator in workspace 7
    Bad: POST /invitations {"email":"member@example.com","…":"…","workspaces":[{"id":7,"role":"operator"}]} -> an open invitation

    Given an organization of its own
    And a member of the organization
    When a client makes each call with its own token:
      | POST /invitations | {"email":"{member}","role":"member","workspaces":[{"id":{workspace},"role":"operator"}]} |
    Then the member has the role "operator" in the workspace

  @ORG-024 @must @spec @spec-2.13
  Scenario: An invitation to a workspace shows six fields and no others
    It has no claimed_at and no associated invitations; that is how clients tell the two kinds.
    Cause: both kinds are written by one piece of code.
    Fix: answer id, email, created_at, created_by_id, claimed_by_id and role only.
    Good: "data":{"id":9,"email":"a@example.com","created_at":"…","created_by_id":3,"claimed_by_id":null,"role":"viewer"}
    Bad: "data":{"id":9,"email":"a@example.com","created_at":"…","created_by_id":3,"claimed_at":null,"claimed_by_id":null,"role":"viewer"}

    Given things of an organization
    When a client makes each call with its own token:
      | POST /workspaces/{workspace}/invitations | {"emails":["{email}"],"role":"viewer"} |
    Then data of each answer has the members:
      | . | object of id, email, created_at, created_by_id, claimed_by_id, role |

  @ORG-026 @must @spec @spec-4
  Scenario: A role in a workspace is owner, editor, operator or viewer
    The roles of the organization are others; one that nobody knows gives rights that nobody has thought of.
    Cause: the role is stored as it comes.
    Fix: refuse every other role.
    Good: POST /workspaces/7/invitations {"emails":["a@example.com"],"role":"admin"} -> 400
    Bad: POST /workspaces/7/invitations {"emails":["a@example.com"],"role":"admin"} -> 200

    Given things of an organization
    When a client makes each call with its own token:
      | POST /workspaces/{workspace}/invitations | {"emails":["{email}"],"role":"admin"}  |
      | POST /workspaces/{workspace}/invitations | {"emails":["{email}"],"role":"member"} |
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation} | {"role":"admin"} |
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation} | {"role":"king"} |
      | POST /invitations | {"email":"{email}","role":"member","workspaces":[{"id":{workspace},"role":"king"}]} |
    Then each call is turned down

  @ORG-027 @must @spec @spec-4
  Scenario: Everybody whose address is named is invited to the workspace
    A list of addresses is one call; the second address counts as much as the first.
    Cause: only the first address is read.
    Fix: make an invitation for each address.
    Good: POST /workspaces/7/invitations {"emails":["a@example.com","b@example.com"],"role":"viewer"} -> two invitations
    Bad: POST /workspaces/7/invitations {"emails":["a@example.com","b@example.com"],"role":"viewer"} -> one invitation

    Given things of an organization
    When a client makes each call with its own token:
      | POST /workspaces/{workspace}/invitations | {"emails":["{email}","{this_email}"],"role":"viewer"} |
    Then the list "/workspaces/{workspace}/invitations" shows "{this_email}" once

  @ORG-028 @must @spec @spec-4 @needs-ORG-024
  Scenario: The role of an invitation to a workspace can be changed
    A mistake in the role is put right before the person comes.
    Cause: the method PUT is missing, or the answer shows the old role.
    Fix: answer {"status":"updated","data":{…}} with the new role.
    Good: PUT /workspaces/7/invitations/9 {"role":"editor"} -> {"status":"updated","data":{"id":9,"role":"editor","…":"…"}}
    Bad: PUT /workspaces/7/invitations/9 {"role":"editor"} -> {"status":"updated","data":{"id":9,"role":"viewer","…":"…"}}

    Given things of an organization
    When a client makes each call with its own token:
      | PUT /workspaces/{workspace}/invitations/{workspace_invitation} | {"role":"editor"} |
    Then the status of each answer is one of "updated"
    And data of each answer has the values:
      | id   | {workspace_invitation} |
      | role | "editor"               |

  @ORG-030 @must @spec @spec-4.1 @needs-ORG-028
  Scenario: Who claims an invitation to a workspace gets the role of its last update
    The role given in an update is applied to the user once the invitation is claimed.
    Cause: the role is copied when the invitation is made.
    Fix: read the role of the invitation with the claim.
    Good: PUT /workspaces/7/invitations/9 {"role":"operator"}, claim -> operator in workspace 7
    Bad: PUT /workspaces/7/invitations/9 {"role":"operator"}, claim -> viewer in workspace 7

    Given an organization of its own
    When a client makes each call with its own token:
      | POST /workspaces/{workspace}/invitations       | {"emails":["{email}"],"role":"viewer"} |
      | PUT /workspaces/{workspace}/invitations/{made} | {"role":"operator"}                    |
    And the invited person claims the invitation to the workspace
    Then the invited person has the role "operator" in the workspace

  @ORG-031 @must @spec @spec-2.14 @spec-4
  Scenario: A user shows the fields of a user
    Typed clients read every field.
    Cause: a field is missing, or the id is that of a membership.
    Fix: answer id, email, created_at and role for every user.
    Good: {"id":3,"email":"a@example.com","created_at":"2026-01-31T09:30:00.000Z","role":"admin"}
    Bad: {"id":3,"email":"a@example.com"}

    When a client makes each call with its own token:
      | GET /users |
    Then data of each answer has the members:
      | id         | integer   |
      | email      | string    |
      | created_at | timestamp |
      | role       | string    |
