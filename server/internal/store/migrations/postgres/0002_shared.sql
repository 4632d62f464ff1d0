-- What several processes of one installation share. Moments are those of the
-- database, whose clock is the only one that all of them see.

-- How many changes were committed: what a process keeps in memory is good as long
-- as the number stays. And how often the keys of the secrets were made anew. Nobody
-- has a schema to himself any more.
ALTER TABLE installation
	ADD COLUMN generation BIGINT NOT NULL DEFAULT 0,
	ADD COLUMN keys BIGINT NOT NULL DEFAULT 0,
	DROP COLUMN epoch,
	DROP COLUMN owner;

-- Who may work on something: the fence counts the holders, and a write with an
-- older one is refused.
CREATE TABLE leases (
	name   TEXT PRIMARY KEY,
	fence  BIGINT NOT NULL,
	holder TEXT NOT NULL,   -- '' when it was given back
	until  TIMESTAMPTZ NOT NULL
);

CREATE TABLE processes (
	id      TEXT PRIMARY KEY,
	role    TEXT NOT NULL,
	version TEXT NOT NULL,
	address TEXT NOT NULL,
	started TIMESTAMPTZ NOT NULL,
	seen    TIMESTAMPTZ NOT NULL
);

-- The files of the ledger. One without a name is over, and deleted when nobody has
-- read it for some minutes.
CREATE TABLE ledger_files (
	file BIGINT PRIMARY KEY,
	sync BIGINT NOT NULL,
	name TEXT,
	size BIGINT NOT NULL,
	gone TIMESTAMPTZ, -- when it lost its name, or was read last since
	UNIQUE (sync, name)
);
CREATE INDEX ledger_files_gone ON ledger_files (gone) WHERE gone IS NOT NULL;
CREATE TABLE ledger_parts (
	file BIGINT NOT NULL REFERENCES ledger_files (file) ON DELETE CASCADE,
	at   BIGINT NOT NULL, -- bytes of the file before it
	data BYTEA NOT NULL,
	PRIMARY KEY (file, at)
);
ALTER TABLE ledger_parts ALTER COLUMN data SET STORAGE EXTERNAL;

-- What was sent on each connection in the last second, and what may be sent. It
-- changes many times in a second, and is worth nothing a second later. A crash of
-- the server empties the table, and is noticed by the missing row without a name.
CREATE UNLOGGED TABLE limits (
	name    TEXT PRIMARY KEY,
	version BIGINT NOT NULL,
	used    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
	state   BYTEA NOT NULL
) WITH (fillfactor = 50);
INSERT INTO limits (name, version, used, state) VALUES ('', 0, 'epoch', '');

-- What was asked and called, for the control API of every process. Nothing is lost
-- with it but a record of tests.
CREATE UNLOGGED TABLE journal (
	kind   TEXT NOT NULL,
	number BIGINT NOT NULL,
	key    TEXT NOT NULL, -- by which one is found
	entry  BYTEA NOT NULL,
	PRIMARY KEY (kind, number)
);
ALTER TABLE journal ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE INDEX journal_by_key ON journal (kind, key);

-- Where each kind stands. Who writes entries holds its row, so that numbers become
-- visible in their order: a reader who goes on from the last one misses none.
CREATE TABLE journals (
	kind    TEXT PRIMARY KEY,
	last    BIGINT NOT NULL, -- the number that was given last
	base    BIGINT NOT NULL, -- the last one before the journal was emptied
	entries BIGINT NOT NULL, -- that are there, at most
	bytes   BIGINT NOT NULL  -- of these
);

-- What the control API has set for all processes, and which of them know.
CREATE TABLE control (
	name    TEXT PRIMARY KEY,
	version BIGINT NOT NULL,
	state   BYTEA NOT NULL
);
CREATE TABLE control_heard (
	process TEXT NOT NULL,
	name    TEXT NOT NULL,
	version BIGINT NOT NULL,
	at      TIMESTAMPTZ NOT NULL,
	PRIMARY KEY (process, name)
);

-- The parts of runs that are cut, for any process with a free worker; the one that
-- has cut the run waits for them.
CREATE TABLE parts (
	sync     BIGINT NOT NULL,
	fence    BIGINT NOT NULL,  -- of the lease of the run
	number   INT NOT NULL,
	deletes  BOOLEAN NOT NULL, -- the second step
	job      BYTEA NOT NULL,
	process  TEXT NOT NULL DEFAULT '', -- who works on it
	until    TIMESTAMPTZ NOT NULL DEFAULT 'infinity', -- for so long, unless it says more
	called   BOOLEAN NOT NULL DEFAULT FALSE, -- it is to stop
	ended    BOOLEAN NOT NULL DEFAULT FALSE,
	reports  BIGINT NOT NULL DEFAULT 0,
	report   BYTEA NOT NULL DEFAULT '',
	PRIMARY KEY (sync, fence, number, deletes)
);
