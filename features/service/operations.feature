Feature: Operations of syncs
  What a sync sends for each operation and strategy, and what becomes of it in the destination.

  @OPER-001 @must @spec @spec-4.2
  Scenario: An upsert sync creates and modifies records
    Who sets a sync to upsert expects the destination to follow the source, new records and changed ones.
    Cause: only records that are new to the sync are sent, or the operation of the batches is another one.
    Fix: send every new and every changed record with operation upsert.
    Good: a changed record is sent with {"sync_plan":{"operation":"upsert",…},"records":[{"id":"b","name":"Bea"}]}
    Bad: a changed record is never sent again

    Given a sync with operation "upsert" of
      | id | name |
      | a  | Ada  |
      | b  | Bob  |
    When the sync runs
    And the source then holds
      | id | name |
      | a  | Ada  |
      | b  | Bea  |
      | c  | Cy   |
    And the sync runs
    Then every batch has the operation "upsert"
    And the destination holds
      | id | name |
      | a  | Ada  |
      | b  | Bea  |
      | c  | Cy   |
