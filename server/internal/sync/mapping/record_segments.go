package mapping

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Segment is a part of the dataset that a sync reads.
type Segment struct {
	ID   int64
	Name string
}

// SegmentColumn is the column that rows have besides those of their dataset where
// a mapping uses it: the ids of the segments that hold the row, each after a
// SegmentMark.
const (
	SegmentColumn = "destkit_segments"
	SegmentMark   = "|"
)

// identifyByName is the one published way to write a segment.
const identifyByName = "name"

// ReadsSegments reports whether a mapping uses the segments of each record.
func ReadsSegments(c *api.SyncConfig) bool {
	return slices.ContainsFunc(c.Mappings, func(m api.Mapping) bool { return m.From.Type == api.FromSegmentMembership })
}

// membership reads the segments of a row: a list in an array, their names with
// commas between in a text, which is null without any.
func (k *compiler) membership(at string, m placed, one *member) api.Kind {
	var by struct {
		IdentifyBy string `json:"identify_by"`
	}
	if err := json.Unmarshal(m.From.Data, &by); err != nil || by.IdentifyBy != identifyByName {
		k.bad(at, "must be %s", dataShape[api.FromSegmentMembership])
		return api.KindAny
	}
	one.step.kind, one.step.column = stepSegments, -1
	if len(k.env.Segments) == 0 {
		return api.KindArray // no row is in any, and none has the column
	}
	place, known := k.places[SegmentColumn]
	if !known {
		place = len(k.plan.columns)
		k.places[SegmentColumn] = place
		k.plan.columns = append(k.plan.columns, SegmentColumn)
		k.plan.segments = map[string]string{}
		for _, g := range k.env.Segments {
			k.plan.segments[fmt.Sprint(g.ID)] = g.Name
		}
	}
	one.step.column = place
	return api.KindArray
}

// appendSegments writes the names of the segments that hold a row, in the order of
// the names.
func (p *Plan) appendSegments(dst []byte, s *planStep, row [][]byte) ([]byte, error) {
	var ids string
	if s.column >= 0 && !isNullText(row[s.column]) {
		if err := json.Unmarshal(row[s.column], &ids); err != nil {
			return dst, fmt.Errorf("the segments of the row cannot be read: %w", err)
		}
	}
	names := []string{}
	for _, id := range strings.Split(ids, SegmentMark) {
		if name, known := p.segments[id]; known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch {
	case s.array:
		return appendArray(dst, api.Raw(names), s.wire)
	case len(names) == 0:
		return append(dst, nullText...), nil
	}
	return appendCast(dst, strings.Join(names, ", "), s.wire, false)
}
