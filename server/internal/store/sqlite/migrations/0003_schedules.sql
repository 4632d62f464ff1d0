-- When syncs fall due, beside the syncs: rows are small, and one is written for each
-- run. due_at is the next moment of a schedule (NULL: none), turn the order of those of
-- one moment, planned_at the moment from which due_at was found (NULL: not found yet,
-- as for what was stored before), after_sync the sync whose end starts this one.
CREATE TABLE schedules (
	sync_id      INTEGER PRIMARY KEY REFERENCES syncs (id) ON DELETE CASCADE,
	workspace_id INTEGER NOT NULL,
	due_at       INTEGER,
	turn         INTEGER NOT NULL,
	planned_at   INTEGER,
	after_sync   INTEGER
) STRICT;
CREATE INDEX schedules_after ON schedules (after_sync, sync_id) WHERE after_sync IS NOT NULL;
CREATE INDEX schedules_due ON schedules (due_at, turn) WHERE due_at IS NOT NULL;
INSERT INTO schedules (sync_id, workspace_id, turn) SELECT id, workspace_id, id FROM syncs;
DELETE FROM settings WHERE key LIKE 'schedule of sync %';

-- A start looks for what messages start, and for nothing else.
CREATE INDEX syncs_live ON syncs (id) WHERE topic_id IS NOT NULL;

-- What retention has yet to drop, in the order of time, and what the figures count.
ALTER TABLE sync_runs ADD COLUMN records_gone INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sync_runs_kept ON sync_runs (completed_at, id) WHERE records_gone = 0 AND completed_at IS NOT NULL;
CREATE INDEX sync_runs_by_status ON sync_runs (status);
