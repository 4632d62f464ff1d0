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

var segments = define(table[Segment]{
	name: "segments", kind: "segment", scope: "source_id",
	columns: []string{"source_id", "dataset_id", "name", "description", "query", "cached_record_count"},
	cells: func(g *Segment) []any {
		return []any{&g.SourceID, &g.DatasetID, &g.Name, &g.Description, &g.Query, &g.CachedRecordCount}
	},
	duplicate: func(g *Segment) (string, string) { return "name", g.Name },
})

// CreateSegment stores a new segment; *DuplicateError for a name that the dataset
// has already.
func (tx *Tx) CreateSegment(g *Segment) error { return segments.create(tx, g) }

// SaveSegment stores a changed segment.
func (tx *Tx) SaveSegment(g *Segment) error { return segments.save(tx, g) }

// Segment reads one segment of a source.
func (tx *Tx) Segment(sourceID, id int64) (*Segment, error) {
	return segments.one(tx, "id = ? AND source_id = ?", id, sourceID)
}

// Segments lists the segments of a source.
func (tx *Tx) Segments(sourceID int64, p Page) ([]*Segment, int64, error) {
	return segments.list(tx, p, sourceID)
}

// SegmentsOfDataset reads the segments of a dataset by their names.
func (tx *Tx) SegmentsOfDataset(datasetID int64) ([]*Segment, error) {
	return segments.some(tx, "dataset_id = ? ORDER BY name, id", datasetID)
}

// DeleteSegment deletes a segment; *InUseError while a sync reads from it.
func (tx *Tx) DeleteSegment(sourceID, id int64) error {
	if _, err := segments.head(tx, sourceID, id); err != nil {
		return err
	}
	if err := tx.unused("segment", id, use{"sync", "SELECT count(*) FROM syncs WHERE segment_id = ?"}); err != nil {
		return err
	}
	return segments.delete(tx, sourceID, id)
}
