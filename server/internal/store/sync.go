package store

import (
	"fmt"

	"github.com/destkit/destkit/server/api"
)

// Sync is a configured movement of records (spec 2.6). DestinationID, SourceID, DatasetID (a
// dataset, or that of a model), SegmentID and TopicID refer to rows that it uses and keep them
// from being deleted. NextAlertID is the caller's to count.
type Sync struct {
	Row
	WorkspaceID int64
	Config      api.SyncConfig
	// Generated are the mappings that the service has made by itself, when the sync
	// was saved or in its last run.
	Generated []api.Mapping
	// Columns are those of the source in the last run, without their kinds; nil
	// before the first run, and when the next one takes them as they are. Accepted
	// are the names of those that mappings are generated of where new ones are
	// ignored; nil elsewhere.
	Columns       []api.Column
	Accepted      []string
	DestinationID int64
	SourceID      int64
	DatasetID     *int64
	TopicID       *int64
	SegmentID     *int64
	Status        string
	MatchRate     *api.MatchRate
	NextAlertID   int64
	// Due is when it falls due, as Create, Save and PlanSync have found; the
	// zero value after a read.
	Due Due
}

// Syncs belong to a workspace. The runs of one that is idle go with it.
var Syncs = define(Table[Sync]{
	name: "syncs", kind: "sync", scope: "workspace_id", counted: true,
	columns: []string{"workspace_id", "destination_id", "source_id", "dataset_id", "topic_id", "segment_id", "status",
		"match_rate", "next_alert_id", "config"},
	cells: func(s *Sync) []any {
		return []any{&s.WorkspaceID, &s.DestinationID, &s.SourceID, &s.DatasetID, &s.TopicID, &s.SegmentID, &s.Status,
			&s.MatchRate, &s.NextAlertID, configCell{s}}
	},
	uses:   []use{{"active run", "SELECT count(*) FROM sync_runs WHERE sync_id = ? AND status IN ('queued', 'working')"}},
	stored: (*Tx).plan,
})

// keptConfig is what the column config holds.
type keptConfig struct {
	api.SyncConfig
	Generated []api.Mapping `json:"generated_mappings,omitempty"`
	Columns   []api.Column  `json:"source_columns,omitempty"`
	Accepted  []string      `json:"accepted_columns,omitempty"`
}

// configCell keeps the configuration of a sync, with what runs have found.
type configCell struct{ *Sync }

func (c configCell) argument() any {
	return doc{keptConfig{c.Config, c.Generated, c.Columns, c.Accepted}}
}

func (c configCell) read(s *scan) {
	var kept keptConfig
	s.doc(&kept)
	c.Config, c.Generated, c.Columns, c.Accepted = kept.SyncConfig, kept.Generated, kept.Columns, kept.Accepted
}

// SetSyncColumns keeps Generated, Columns and Accepted as a run has left them. As
// with its outcome, no one has changed the sync, but replies show it.
func (tx *Tx) SetSyncColumns(s *Sync) error {
	if _, err := tx.exec("UPDATE syncs SET config = ?, version = version + 1 WHERE id = ?", configCell{s}.argument(), s.ID); err != nil {
		return fmt.Errorf("set columns and generated mappings of sync %d: %w", s.ID, err)
	}
	return nil
}

// SetSyncOutcome keeps what the last run left behind. Its UpdatedAt stays, since
// no one changed the sync; its version counts up, since replies show it.
func (tx *Tx) SetSyncOutcome(id int64, status string, rate *api.MatchRate) error {
	changed, err := tx.exec("UPDATE syncs SET status = ?, match_rate = ?, version = version + 1 WHERE id = ?",
		status, doc{rate}, id)
	if err == nil && changed == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("set outcome of sync %d: %w", id, err)
	}
	return nil
}

// EverySync reads at most limit syncs of all workspaces with an id above after,
// in the order of their ids.
func (tx *Tx) EverySync(after, limit int64) ([]*Sync, error) {
	return Syncs.some(tx, "id > ? ORDER BY id LIMIT ?", after, limit)
}

// EveryTopicSync is EverySync of those that read topics.
func (tx *Tx) EveryTopicSync(after, limit int64) ([]*Sync, error) {
	return Syncs.some(tx, "topic_id IS NOT NULL AND id > ? ORDER BY id LIMIT ?", after, limit)
}

// SyncsOfTopic reads the syncs that read a topic, in the order of their ids.
func (tx *Tx) SyncsOfTopic(topicID int64) ([]*Sync, error) {
	return Syncs.some(tx, "topic_id = ? ORDER BY id", topicID)
}
