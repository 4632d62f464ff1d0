-- Times are milliseconds since 1970, UTC. Columns of JSON text are read and
-- written as a whole. Columns named sealed_ hold encrypted values (NULL: none).
-- Every list is read through an index (owner, created_at, id).

CREATE TABLE settings (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT;

CREATE TABLE organizations (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	name       TEXT NOT NULL
) STRICT;

-- first_state is what a reset brings back (JSON); null for rows that it removes.
CREATE TABLE users (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	version         INTEGER NOT NULL,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	organization_id INTEGER NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
	email           TEXT NOT NULL,
	email_key       TEXT NOT NULL,
	role            TEXT NOT NULL,
	notifications   INTEGER NOT NULL,
	first_state     TEXT NOT NULL,
	UNIQUE (organization_id, email_key)
) STRICT;
CREATE INDEX users_listed ON users (organization_id, created_at, id);

CREATE TABLE access_tokens (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	version    INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	user_id    INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	label      TEXT NOT NULL,
	hash       BLOB NOT NULL UNIQUE
) STRICT;
CREATE INDEX access_tokens_listed ON access_tokens (user_id, created_at, id);

-- A workspace that a reset brings back is not deleted but hidden (gone).
CREATE TABLE workspaces (
	id                  INTEGER PRIMARY KEY AUTOINCREMENT,
	version             INTEGER NOT NULL,
	created_at          INTEGER NOT NULL,
	updated_at          INTEGER NOT NULL,
	organization_id     INTEGER NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
	name                TEXT NOT NULL,
	notification_emails TEXT NOT NULL,
	first_state         TEXT NOT NULL,
	gone                INTEGER NOT NULL DEFAULT 0,
	key_hash            BLOB UNIQUE,
	sealed_key          BLOB
) STRICT;
CREATE UNIQUE INDEX workspaces_named ON workspaces (organization_id, name) WHERE gone = 0;
CREATE INDEX workspaces_listed ON workspaces (organization_id, created_at, id) WHERE gone = 0;

CREATE TABLE memberships (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	version      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	user_id      INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	role         TEXT NOT NULL,
	first_state  TEXT NOT NULL,
	UNIQUE (workspace_id, user_id)
) STRICT;
CREATE INDEX memberships_listed ON memberships (workspace_id, created_at, id);
CREATE INDEX memberships_by_user ON memberships (user_id);

-- workspace_id is null for keys of the installation. retired ones open old
-- values and seal no new ones.
CREATE TABLE data_keys (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	workspace_id INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
	wrapped      BLOB NOT NULL,
	retired      INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX data_keys_by_workspace ON data_keys (workspace_id);

CREATE TABLE invitations (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	version         INTEGER NOT NULL,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	organization_id INTEGER NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
	email           TEXT NOT NULL,
	role            TEXT NOT NULL,
	created_by_id   INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	claimed_at      INTEGER,
	claimed_by_id   INTEGER REFERENCES users (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX invitations_listed ON invitations (organization_id, created_at, id);
CREATE INDEX invitations_by_creator ON invitations (created_by_id);
CREATE INDEX invitations_by_claimer ON invitations (claimed_by_id);

CREATE TABLE workspace_invitations (
	id            INTEGER PRIMARY KEY AUTOINCREMENT,
	version       INTEGER NOT NULL,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL,
	invitation_id INTEGER REFERENCES invitations (id) ON DELETE CASCADE,
	workspace_id  INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	email         TEXT NOT NULL,
	role          TEXT NOT NULL,
	created_by_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	claimed_at    INTEGER,
	claimed_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL
) STRICT;
CREATE INDEX workspace_invitations_listed ON workspace_invitations (workspace_id, created_at, id);
CREATE INDEX workspace_invitations_by_invitation ON workspace_invitations (invitation_id);
CREATE INDEX workspace_invitations_by_creator ON workspace_invitations (created_by_id);
CREATE INDEX workspace_invitations_by_claimer ON workspace_invitations (claimed_by_id);

CREATE TABLE destinations (
	id                 INTEGER PRIMARY KEY AUTOINCREMENT,
	version            INTEGER NOT NULL,
	created_at         INTEGER NOT NULL,
	updated_at         INTEGER NOT NULL,
	workspace_id       INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	name               TEXT NOT NULL,
	type               TEXT NOT NULL,
	test_results       TEXT NOT NULL,
	test_succeeded     INTEGER,
	tested_at          INTEGER,
	sealed_credentials BLOB
) STRICT;
CREATE INDEX destinations_listed ON destinations (workspace_id, created_at, id);

CREATE TABLE object_caches (
	destination_id INTEGER PRIMARY KEY REFERENCES destinations (id) ON DELETE CASCADE,
	fetched_at     INTEGER NOT NULL,
	objects        TEXT NOT NULL
) STRICT;

CREATE TABLE sources (
	id                  INTEGER PRIMARY KEY AUTOINCREMENT,
	version             INTEGER NOT NULL,
	created_at          INTEGER NOT NULL,
	updated_at          INTEGER NOT NULL,
	workspace_id        INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	name                TEXT NOT NULL,
	type                TEXT NOT NULL,
	engine              TEXT NOT NULL,
	details             TEXT NOT NULL,
	writeback_retention INTEGER,
	test_succeeded      INTEGER,
	tested_at           INTEGER,
	sealed_credentials  BLOB
) STRICT;
CREATE INDEX sources_listed ON sources (workspace_id, created_at, id);

CREATE TABLE source_tables (
	id            INTEGER PRIMARY KEY AUTOINCREMENT,
	version       INTEGER NOT NULL,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL,
	source_id     INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
	table_catalog TEXT NOT NULL,
	table_schema  TEXT NOT NULL,
	table_name    TEXT NOT NULL,
	columns       TEXT NOT NULL,
	gone          INTEGER NOT NULL,
	UNIQUE (source_id, table_catalog, table_schema, table_name)
) STRICT;
CREATE INDEX source_tables_listed ON source_tables (source_id, created_at, id) WHERE gone = 0;

CREATE TABLE refreshes (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	version      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	kind         TEXT NOT NULL,
	target_id    INTEGER NOT NULL,
	status       TEXT NOT NULL,
	error        TEXT NOT NULL,
	started_at   INTEGER,
	completed_at INTEGER
) STRICT;
CREATE INDEX refreshes_listed ON refreshes (workspace_id, created_at, id);
CREATE INDEX refreshes_under_way ON refreshes (id) WHERE status = 'processing';

CREATE TABLE datasets (
	id                  INTEGER PRIMARY KEY AUTOINCREMENT,
	version             INTEGER NOT NULL,
	created_at          INTEGER NOT NULL,
	updated_at          INTEGER NOT NULL,
	workspace_id        INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	source_id           INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
	name                TEXT NOT NULL,
	description         TEXT NOT NULL,
	query               TEXT NOT NULL,
	slug                TEXT NOT NULL,
	columns             TEXT NOT NULL,
	cached_record_count INTEGER,
	record_count_at     INTEGER,
	UNIQUE (workspace_id, slug)
) STRICT;
CREATE INDEX datasets_listed ON datasets (workspace_id, created_at, id);
CREATE INDEX datasets_by_source ON datasets (source_id);

CREATE TABLE models (
	id               INTEGER PRIMARY KEY AUTOINCREMENT,
	version          INTEGER NOT NULL,
	created_at       INTEGER NOT NULL,
	updated_at       INTEGER NOT NULL,
	source_id        INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
	dataset_id       INTEGER NOT NULL UNIQUE REFERENCES datasets (id) ON DELETE CASCADE,
	source_object_id INTEGER NOT NULL,
	name             TEXT NOT NULL,
	description      TEXT NOT NULL,
	query            TEXT NOT NULL,
	compiled_query   TEXT NOT NULL,
	columns          TEXT NOT NULL
) STRICT;
CREATE INDEX models_listed ON models (source_id, created_at, id);

CREATE TABLE topics (
	id             INTEGER PRIMARY KEY AUTOINCREMENT,
	version        INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	updated_at     INTEGER NOT NULL,
	source_id      INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
	name           TEXT NOT NULL,
	description    TEXT NOT NULL,
	sample_message TEXT NOT NULL,
	fields         TEXT NOT NULL,
	last_message   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (source_id, name)
) STRICT;
CREATE INDEX topics_listed ON topics (source_id, created_at, id);

CREATE TABLE topic_messages (
	topic_id INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
	number   INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	body     TEXT NOT NULL,
	PRIMARY KEY (topic_id, number)
) STRICT, WITHOUT ROWID;

-- What a sync uses cannot be deleted (NO ACTION); its workspace can.
CREATE TABLE syncs (
	id             INTEGER PRIMARY KEY AUTOINCREMENT,
	version        INTEGER NOT NULL,
	created_at     INTEGER NOT NULL,
	updated_at     INTEGER NOT NULL,
	workspace_id   INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	destination_id INTEGER NOT NULL REFERENCES destinations (id),
	source_id      INTEGER NOT NULL REFERENCES sources (id),
	dataset_id     INTEGER REFERENCES datasets (id),
	topic_id       INTEGER REFERENCES topics (id),
	status         TEXT NOT NULL,
	match_rate     TEXT NOT NULL,
	next_alert_id  INTEGER NOT NULL,
	config         TEXT NOT NULL
) STRICT;
-- With the version, so that heads are listed from the index alone.
CREATE INDEX syncs_listed ON syncs (workspace_id, created_at, id, version);
CREATE INDEX syncs_by_destination ON syncs (destination_id);
CREATE INDEX syncs_by_source ON syncs (source_id);
CREATE INDEX syncs_by_dataset ON syncs (dataset_id);
CREATE INDEX syncs_by_topic ON syncs (topic_id);

CREATE TABLE sync_runs (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	version      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	sync_id      INTEGER NOT NULL REFERENCES syncs (id) ON DELETE CASCADE,
	status       TEXT NOT NULL,
	canceled     INTEGER NOT NULL,
	completed_at INTEGER,
	started_at   INTEGER,
	told_at      INTEGER,
	run          TEXT NOT NULL
) STRICT;
CREATE INDEX sync_runs_listed ON sync_runs (sync_id, created_at, id);
CREATE INDEX sync_runs_by_workspace ON sync_runs (workspace_id);
CREATE INDEX sync_runs_untold ON sync_runs (id) WHERE started_at IS NOT NULL AND told_at IS NULL;
CREATE INDEX sync_runs_active ON sync_runs (sync_id, id) WHERE status IN ('queued', 'working');

CREATE TABLE webhooks (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	version         INTEGER NOT NULL,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	workspace_id    INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	name            TEXT NOT NULL,
	description     TEXT NOT NULL,
	events          TEXT NOT NULL,
	site            TEXT NOT NULL,
	sealed_endpoint BLOB,
	sealed_secret   BLOB
) STRICT;
CREATE INDEX webhooks_listed ON webhooks (workspace_id, created_at, id);

-- What is or was on its way to a webhook. The sync may be gone.
CREATE TABLE webhook_deliveries (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	version      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	workspace_id INTEGER NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
	webhook_id   INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
	sync_id      INTEGER NOT NULL,
	sync_run_id  INTEGER NOT NULL,
	event        TEXT NOT NULL,
	body         TEXT NOT NULL,
	status       TEXT NOT NULL,
	attempts     INTEGER NOT NULL,
	next_attempt INTEGER,
	last_attempt INTEGER,
	http_status  INTEGER NOT NULL,
	error        TEXT NOT NULL
) STRICT;
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (workspace_id, created_at, id);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id);
CREATE INDEX webhook_deliveries_open ON webhook_deliveries (id) WHERE status = 'open';

-- Violations that last. The id is what notices call the instance of an alert.
CREATE TABLE open_alerts (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	version     INTEGER NOT NULL,
	created_at  INTEGER NOT NULL,
	updated_at  INTEGER NOT NULL,
	sync_id     INTEGER NOT NULL REFERENCES syncs (id) ON DELETE CASCADE,
	alert_id    INTEGER NOT NULL,
	type        TEXT NOT NULL,
	last_run_id INTEGER NOT NULL,
	UNIQUE (sync_id, alert_id)
) STRICT;
CREATE INDEX open_alerts_listed ON open_alerts (sync_id, created_at, id);

CREATE TABLE mails (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	version         INTEGER NOT NULL,
	created_at      INTEGER NOT NULL,
	updated_at      INTEGER NOT NULL,
	organization_id INTEGER NOT NULL REFERENCES organizations (id) ON DELETE CASCADE,
	workspace_id    INTEGER REFERENCES workspaces (id) ON DELETE CASCADE,
	recipients      TEXT NOT NULL,
	sender          TEXT NOT NULL,
	subject         TEXT NOT NULL,
	body            TEXT NOT NULL,
	kind            TEXT NOT NULL,
	at              INTEGER NOT NULL,
	delivery        TEXT NOT NULL,
	attempts        INTEGER NOT NULL,
	next_attempt    INTEGER,
	error           TEXT NOT NULL
) STRICT;
CREATE INDEX mails_listed ON mails (organization_id, created_at, id);
CREATE INDEX mails_by_workspace ON mails (workspace_id);
CREATE INDEX mails_open ON mails (id) WHERE delivery = 'open';

-- How many rows of a table an owner has: counting 10,000 of them through an
-- index takes longer than reading a page. Only long lists are kept here.
CREATE TABLE row_counts (
	name  TEXT NOT NULL,
	owner INTEGER NOT NULL,
	rows  INTEGER NOT NULL,
	PRIMARY KEY (name, owner)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER users_more AFTER INSERT ON users BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('users', NEW.organization_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER users_fewer AFTER DELETE ON users BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'users' AND owner = OLD.organization_id;
	DELETE FROM row_counts WHERE name = 'users' AND owner = OLD.organization_id AND rows = 0;
END;

CREATE TRIGGER destinations_more AFTER INSERT ON destinations BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('destinations', NEW.workspace_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER destinations_fewer AFTER DELETE ON destinations BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'destinations' AND owner = OLD.workspace_id;
	DELETE FROM row_counts WHERE name = 'destinations' AND owner = OLD.workspace_id AND rows = 0;
END;

CREATE TRIGGER sources_more AFTER INSERT ON sources BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('sources', NEW.workspace_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER sources_fewer AFTER DELETE ON sources BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'sources' AND owner = OLD.workspace_id;
	DELETE FROM row_counts WHERE name = 'sources' AND owner = OLD.workspace_id AND rows = 0;
END;

CREATE TRIGGER datasets_more AFTER INSERT ON datasets BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('datasets', NEW.workspace_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER datasets_fewer AFTER DELETE ON datasets BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'datasets' AND owner = OLD.workspace_id;
	DELETE FROM row_counts WHERE name = 'datasets' AND owner = OLD.workspace_id AND rows = 0;
END;

CREATE TRIGGER topics_more AFTER INSERT ON topics BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('topics', NEW.source_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER topics_fewer AFTER DELETE ON topics BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'topics' AND owner = OLD.source_id;
	DELETE FROM row_counts WHERE name = 'topics' AND owner = OLD.source_id AND rows = 0;
END;

CREATE TRIGGER syncs_more AFTER INSERT ON syncs BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('syncs', NEW.workspace_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER syncs_fewer AFTER DELETE ON syncs BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'syncs' AND owner = OLD.workspace_id;
	DELETE FROM row_counts WHERE name = 'syncs' AND owner = OLD.workspace_id AND rows = 0;
END;

CREATE TRIGGER sync_runs_more AFTER INSERT ON sync_runs BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('sync_runs', NEW.sync_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER sync_runs_fewer AFTER DELETE ON sync_runs BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'sync_runs' AND owner = OLD.sync_id;
	DELETE FROM row_counts WHERE name = 'sync_runs' AND owner = OLD.sync_id AND rows = 0;
END;

CREATE TRIGGER mails_more AFTER INSERT ON mails BEGIN
	INSERT INTO row_counts (name, owner, rows) VALUES ('mails', NEW.organization_id, 1)
		ON CONFLICT (name, owner) DO UPDATE SET rows = rows + 1;
END;
CREATE TRIGGER mails_fewer AFTER DELETE ON mails BEGIN
	UPDATE row_counts SET rows = rows - 1 WHERE name = 'mails' AND owner = OLD.organization_id;
	DELETE FROM row_counts WHERE name = 'mails' AND owner = OLD.organization_id AND rows = 0;
END;
