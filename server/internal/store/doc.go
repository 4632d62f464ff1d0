// Package store owns the data of the service: organizations, their workspaces and everything in
// them, in one embedded SQLite database, on disk or in memory. It owns the rows, transactions,
// optimistic versions, paging, and when copies are made and put back. It leaves the database and
// its tables to sqlite, and the encryption of secrets and their keys to sealing. It refuses to
// know the REST API's rules, the form of replies, and how a sync runs: callers check a payload
// before they store it.
//
// # Transactions
//
// All work happens in a Tx. View gives one consistent read, many at once; Update
// is the one writer: it waits for its turn, is rolled back on an error or a
// panic, and is durable when it returns nil. Within a transaction the clock does
// not move (Tx.Now). Neither may be called from inside the other.
//
// # Rows
//
// Each kind of row has a Table, and every row embeds Row. Create fills that; Save writes
// the whole row, fails with ErrConflict when the stored version is another one than the
// row's, and counts the version up. Ids are never used twice, not after a deletion either.
// Times are kept in milliseconds, in UTC. Reads take the id of the owner (workspace,
// organization, source) first: a row of another owner is not found.
//
// # Files
//
// A directory holds destkit.db (with -wal and -shm while it is in use),
// destkit.db-sum, the checksum that a stop leaves, owner.lock, which a running process
// keeps locked, and owner, the text that a second process shows. The folder is made
// with mode 0700, files with 0600.
//
// # Secrets
//
// Credentials, URLs of webhooks and workspace keys are sealed with AES-256-GCM
// under a data key of their workspace; the data keys are wrapped by the master
// key, which is never stored. A sealed value is bound to its table, row and
// column, so it opens nowhere else. Columns named sealed_… hold nothing but such
// values. Access tokens are kept as hashes only.
//
// Any other field is stored as the caller sets it.
package store
