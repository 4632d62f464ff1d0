package executor

// What the ledger says of a record where no destination said it.
const (
	// InDoubt is the message of a record that was sent and not answered.
	InDoubt = inDoubt
	// Duplicate is the reason of a record whose identifier stands more than once
	// in the source.
	Duplicate = invalidDuplicate
	// OperationSkip is the operation of records that were taken as sent
	// (historical_sync_operation skip_current_records, spec 2.6).
	OperationSkip = operationSkip
)
