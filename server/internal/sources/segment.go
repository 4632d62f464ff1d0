package sources

import (
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// SegmentField is where a sync names its segment.
const SegmentField = "source_attributes.filter_segment_id"

// FoldSegment brings the places where a client may name a segment into one form: a
// source object of type dataset, and the id in source_attributes and at the top.
// Replies show filter_segment_source, which may come back.
func (k *Sources) FoldSegment(c *call.Call, config *api.SyncConfig) ([]api.Problem, error) {
	at := &config.SourceAttributes
	switch inside, top := c.Has("source_attributes"), c.Has("filter_segment_id"); {
	case inside && top && at.FilterSegmentID != nil && config.FilterSegmentID != nil && *at.FilterSegmentID != *config.FilterSegmentID:
		return []api.Problem{{Field: SegmentField, Message: fmt.Sprintf("contradicts filter_segment_id (%d against %d): leave one of them out",
			*at.FilterSegmentID, *config.FilterSegmentID)}}, nil
	case at.FilterSegmentID == nil && (top || !inside), top && !inside:
		at.FilterSegmentID = config.FilterSegmentID
	}
	if problems, err := k.namedSegment(c, at); err != nil || len(problems) > 0 {
		return problems, err
	}
	config.FilterSegmentID = at.FilterSegmentID
	return nil, nil
}

// namedSegment turns an object of type segment, or of the type that replies show,
// into the dataset with the segment.
func (k *Sources) namedSegment(c *call.Call, at *api.SourceAttributes) ([]api.Problem, error) {
	o := &at.Object
	if o.Type != api.ObjectSegment && o.Type != api.ObjectFilterSegment {
		return nil, nil
	}
	if at.FilterSegmentID == nil {
		at.FilterSegmentID = o.ID
	}
	if at.FilterSegmentID == nil {
		return absent(".id", "is required: the id of the segment"), nil
	}
	var g *store.Segment
	err := c.View(func(tx *store.Tx) (err error) {
		g, err = store.Segments.Read(tx, at.ConnectionID, *at.FilterSegmentID)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return noSegment(at.ConnectionID, *at.FilterSegmentID), nil
	}
	if err != nil {
		return nil, err
	}
	if o.ID != nil && *o.ID != g.ID && *o.ID != g.DatasetID {
		return absent(".id", "is neither the segment %d nor its dataset %d", g.ID, g.DatasetID), nil
	}
	*o = api.SourceObject{Type: api.ObjectDataset, ID: &g.DatasetID}
	return nil, nil
}

func noSegment(sourceID, id int64) []api.Problem {
	return []api.Problem{{Field: SegmentField, Message: fmt.Sprintf("source %d has no segment %d; see /sources/%[1]d/filter_segments", sourceID, id)}}
}

// segment finds the segment of a sync, which is one of the dataset that it reads.
func (f *Shape) segment(tx *store.Tx, id int64) ([]api.Problem, error) {
	if f.Object.Type != api.ObjectDataset {
		return nil, nil // refused by the rules about the configuration
	}
	g, err := store.Segments.Read(tx, f.Source.ID, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noSegment(f.Source.ID, id), nil
	case err != nil:
		return nil, err
	case g.DatasetID != *f.DatasetID:
		return []api.Problem{{Field: SegmentField, Message: fmt.Sprintf("segment %d belongs to dataset %d, not to dataset %d", g.ID, g.DatasetID, *f.DatasetID)}}, nil
	}
	f.Segment = g
	return nil, nil
}

// SegmentSource is the source of a sync as replies show it: that of a segment under
// its published name.
func SegmentSource(at api.SourceAttributes) api.SourceAttributes {
	if at.FilterSegmentID != nil && at.Object.Type == api.ObjectDataset {
		at.Object = api.SourceObject{Type: api.ObjectFilterSegment, ID: at.FilterSegmentID, DatasetID: at.Object.ID}
	}
	return at
}
