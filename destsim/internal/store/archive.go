package store

// Archive is a store whose whole content can be copied out and replaced. Both
// stores are one; it stands apart from store since only snapshots need it.
type Archive interface {
	// Dump calls fixed when the content to be dumped is decided and no batch is
	// half in it, then each for every row in ascending order of id. lastID is
	// the highest id that was ever given. Batches go on during each.
	Dump(fixed func(lastID int64), each func(table string, r Row) error) error
	// Stage opens room for another content, which is not seen before Commit.
	Stage() (Stage, error)
}

// Stage is a content in the making. After Commit or Discard it is dead.
type Stage interface {
	// Put adds a row; ids ascend over all tables.
	Put(table string, r Row) error
	// Commit replaces everything in the store; a failure changes nothing.
	Commit(lastID int64) error
	// Discard frees what was staged; after Commit it does nothing.
	Discard()
}
