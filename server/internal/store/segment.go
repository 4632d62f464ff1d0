package store

// Segment is the part of a dataset that meets Query, a condition in SQL. Name is
// unique in its dataset.
type Segment struct {
	Row
	SourceID          int64 // of the dataset
	DatasetID         int64
	Name              string
	Description       *string
	Query             string
	CachedRecordCount *int64
}

// Segments belong to a source.
var Segments = define(Table[Segment]{
	name: "segments", kind: "segment", scope: "source_id",
	columns: []string{"source_id", "dataset_id", "name", "description", "query", "cached_record_count"},
	cells: func(g *Segment) []any {
		return []any{&g.SourceID, &g.DatasetID, &g.Name, &g.Description, &g.Query, &g.CachedRecordCount}
	},
	duplicate: func(g *Segment) (string, string) { return "name", g.Name },
	uses:      []use{{"sync", "SELECT count(*) FROM syncs WHERE segment_id = ?"}},
})

// SegmentsOfDataset reads the segments of a dataset by their names.
func (tx *Tx) SegmentsOfDataset(datasetID int64) ([]*Segment, error) {
	return Segments.some(tx, "dataset_id = ? ORDER BY name, id", datasetID)
}
