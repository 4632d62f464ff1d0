-- A segment is the part of a dataset that meets a condition; a sync of it uses both.
CREATE TABLE segments (
	id                  INTEGER PRIMARY KEY AUTOINCREMENT,
	version             INTEGER NOT NULL,
	created_at          INTEGER NOT NULL,
	updated_at          INTEGER NOT NULL,
	source_id           INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
	dataset_id          INTEGER NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
	name                TEXT NOT NULL,
	description         TEXT NOT NULL,
	query               TEXT NOT NULL,
	cached_record_count INTEGER,
	UNIQUE (dataset_id, name)
) STRICT;
CREATE INDEX segments_listed ON segments (source_id, created_at, id);

ALTER TABLE syncs ADD COLUMN segment_id INTEGER REFERENCES segments (id);
CREATE INDEX syncs_by_segment ON syncs (segment_id);

-- Pages for a browser: each is opened by its token, which is sealed and found by its
-- hash, and answered once.
CREATE TABLE links (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	version      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	kind         TEXT NOT NULL,
	type         TEXT NOT NULL,
	target_id    INTEGER,
	redirect_uri TEXT NOT NULL,
	expires_at   INTEGER NOT NULL,
	used_at      INTEGER,
	token_hash   BLOB UNIQUE,
	sealed_token BLOB
) STRICT;
CREATE INDEX links_listed ON links (workspace_id, created_at, id);
