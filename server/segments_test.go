package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sources"
)

// segmentWorld is a sync world with a dataset of five customers and segments of it.
type segmentWorld struct {
	*syncWorld
	dataset int64
	path    string // of the segments of the source
}

func newSegmentWorld(t testing.TB) *segmentWorld {
	t.Helper()
	w := newSyncWorld(t)
	w.changeSource(`INSERT INTO customers (id, email, name, age) VALUES (2, 'grace@example.com', 'Grace', 17),
		(3, 'alan@example.com', 'Alan', 41), (4, 'edsger@example.com', 'Edsger', NULL), (5, 'kay@example.com', 'Kay', 12)`)
	// With possible ends of a query.
	id := w.do("POST", "/datasets", w.key, dataset(w.source, "People", "SELECT id, email, name, age FROM customers -- all\n;")).want(201).id("data.id")
	return &segmentWorld{w, id, fmt.Sprintf("/sources/%d/filter_segments", w.source)}
}

// segment creates one and gives its id.
func (w *segmentWorld) segment(name, query string) int64 {
	w.t.Helper()
	return w.do("POST", w.path, w.key, map[string]any{"name": name, "dataset_id": w.dataset, "query": query}).want(201).id("data.id")
}

// of is the change that lets a sync read the dataset, with more keys next to
// the object.
func (w *segmentWorld) of(beside map[string]any) map[string]any {
	at := map[string]any{"connection_id": w.source, "object": map[string]any{"type": "dataset", "id": w.dataset}}
	maps.Copy(at, beside)
	return map[string]any{"source_attributes": at}
}

// stored are the last names, sorted, with the value of another field where that is
// named.
func (w *segmentWorld) stored() (names []string) {
	w.t.Helper()
	records, _ := w.records("person")
	for _, r := range records {
		names = append(names, string(r.Fields))
	}
	slices.Sort(names)
	return names
}

func TestSegments(t *testing.T) {
	w := newSegmentWorld(t)
	a := w.do("POST", w.path, w.key, map[string]any{"name": " Grown-ups ", "dataset_id": w.dataset, "query": "age > 17 -- years", "description": "of age"}).want(201)
	a.is("data.name", "Grown-ups", "data.description", "of age")
	require.Equal(t, w.source, a.id("data.source_id"))
	require.Equal(t, w.dataset, a.id("data.dataset_id"))
	a.is("data.query", "age > 17 -- years", "data.cached_record_count", 2)
	one := fmt.Sprintf("%s/%d", w.path, a.id("data.id"))
	require.Equal(t, a.at("data"), w.do("GET", one, w.key, nil).want(200).at("data"))
	changed := w.do("PATCH", one, w.key, map[string]any{"query": "age IS NULL", "description": nil}).want(200)
	changed.is("data.cached_record_count", 1, "data.description", nil, "data.name", "Grown-ups")
	stranger := w.stranger()
	w.do("GET", one, stranger, nil).want(404)
	w.do("GET", w.path, stranger, nil).want(404)
	w.remove(one, w.key)
}

func TestSegmentProblems(t *testing.T) {
	w := newSegmentWorld(t)
	other := w.newEmulated("s3cret").id("data.id")
	foreign := w.do("POST", "/datasets", w.key, dataset(other, "Users", "SELECT * FROM USERS")).want(201).id("data.id")
	body := func(changes map[string]any) map[string]any {
		b := map[string]any{"name": "A", "dataset_id": w.dataset, "query": "age > 17"}
		maps.Copy(b, changes)
		return b
	}
	for name, tc := range map[string]struct {
		change         map[string]any
		field, message string
	}{
		"blank name":           {map[string]any{"name": " "}, "name", ""},
		"blank condition":      {map[string]any{"query": " "}, "query", "age > 17"},
		"unknown dataset":      {map[string]any{"dataset_id": 999}, "dataset_id", "no dataset 999"},
		"dataset of another":   {map[string]any{"dataset_id": foreign}, "dataset_id", "belongs to source"},
		"unknown column":       {map[string]any{"query": "years > 17"}, "query", "years"},
		"no SQL":               {map[string]any{"query": "who is of age"}, "query", "refuses the condition"},
		"an aggregate":         {map[string]any{"query": "count(*) > 1"}, "query", "refuses the condition"},
		"two statements":       {map[string]any{"query": "1 = 1); DELETE FROM customers; --"}, "query", "refuses the condition"},
		"out of its brackets":  {map[string]any{"query": "1 = 1) UNION SELECT id, email, name, age FROM customers WHERE (1 = 1"}, "query", "refuses the condition"},
		"the place is its own": {map[string]any{"query": "age > > 17"}, "query", "at character 7"},
		"a clause behind it":   {map[string]any{"query": "age > 17 ORDER BY id"}, "query", "refuses the condition"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.do("POST", w.path, w.key, body(tc.change)).want(400).problems()
			require.Contains(t, got, tc.field)
			require.Contains(t, got[tc.field], tc.message)
		})
	}
	one := fmt.Sprintf("%s/%d", w.path, w.segment("Kept", "age > 17"))
	require.Contains(t, w.do("PATCH", one, w.key, map[string]any{"dataset_id": foreign}).want(400).problems()["dataset_id"], "create another segment")
	require.Contains(t, w.do("PATCH", one, w.key, map[string]any{"query": "years > 1"}).want(400).problems()["query"], "years")
	require.Equal(t, "age > 17", w.do("GET", one, w.key, nil).want(200).at("data.query"))
	// A query that leaves a segment without its column is refused with that reason.
	refused := w.do("PATCH", fmt.Sprintf("/datasets/%d", w.dataset), w.key, map[string]any{"query": "SELECT id, email FROM customers"}).want(400).problems()["query"]
	holds(t, refused, "(Kept) would not hold on it", "age")
}

// TestSyncOfASegment: the rows of the segment are sent and no others; one that
// leaves it is gone for the sync, one that comes is new.
func TestSyncOfASegment(t *testing.T) {
	w := newSegmentWorld(t)
	grown := w.segment("Grown-ups", "age > 17")
	change := w.of(map[string]any{"filter_segment_id": grown})
	change["operation"] = "mirror"
	made := w.kept(change)
	require.Equal(t, map[string]any{"type": "filter_segment_source", "id": made.at("data.filter_segment_id"), "dataset_id": made.at("data.source_attributes.object.dataset_id")},
		made.at("data.source_attributes.object"))
	require.Equal(t, grown, made.id("data.filter_segment_id"))
	require.Equal(t, grown, made.id("data.source_attributes.filter_segment_id"))
	require.Equal(t, w.dataset, made.id("data.source_attributes.object.dataset_id"))
	id := made.id("data.id")
	require.Equal(t, [7]int64{2, 2, 0, 0, 2, 2, 0}, w.runs(id).counts())
	w.changeSource(`UPDATE customers SET age = 10 WHERE id = 3; UPDATE customers SET age = 18 WHERE id = 2`)
	require.Equal(t, [7]int64{2, 1, 1, 0, 2, 2, 0}, w.runs(id).counts())
	names := strings.Join(w.stored(), "\n")
	holds(t, names, "Ada", "Grace")
	require.NotContains(t, names, "Alan")
	// A changed condition counts from the next run on.
	w.do("PATCH", fmt.Sprintf("%s/%d", w.path, grown), w.key, map[string]any{"query": "age > 20"}).want(200)
	require.Equal(t, [7]int64{1, 0, 1, 0, 1, 1, 0}, w.runs(id).counts())
	require.Contains(t, w.do("DELETE", fmt.Sprintf("%s/%d", w.path, grown), w.key, nil).want(409).at("message"), "in use by 1 sync")
	w.remove(fmt.Sprintf("/syncs/%d", id), w.key)
	w.remove(fmt.Sprintf("%s/%d", w.path, grown), w.key)
}

// TestWaysToNameASegment: a client may name it in two places, by two types, and
// send back what it has read.
func TestWaysToNameASegment(t *testing.T) {
	w := newSegmentWorld(t)
	grown, young := w.segment("Grown-ups", "age > 17"), w.segment("Young", "age < 18")
	top := w.of(nil)
	top["filter_segment_id"] = grown
	both := w.of(map[string]any{"filter_segment_id": grown})
	both["filter_segment_id"] = grown
	object := func(o map[string]any, beside map[string]any) map[string]any {
		change := w.of(beside)
		change["source_attributes"].(map[string]any)["object"] = o
		return change
	}
	var shown any
	for name, change := range map[string]map[string]any{
		"beside the object": w.of(map[string]any{"filter_segment_id": grown}), "at the top": top, "both": both,
		"a segment":             object(map[string]any{"type": "segment", "id": grown}, nil),
		"its dataset":           object(map[string]any{"type": "segment", "id": w.dataset}, map[string]any{"filter_segment_id": grown}),
		"as it was read":        object(map[string]any{"type": "filter_segment_source", "id": grown, "dataset_id": w.dataset}, map[string]any{"filter_segment_id": grown}),
		"as it was read, alone": object(map[string]any{"type": "filter_segment_source", "id": grown, "dataset_id": w.dataset}, nil),
	} {
		a := w.kept(change)
		require.Equal(t, grown, a.id("data.filter_segment_id"), name)
		if shown == nil {
			shown = a.at("data.source_attributes")
		}
		require.Equal(t, shown, a.at("data.source_attributes"), name)
	}
	id := w.kept(top).id("data.id")
	path := fmt.Sprintf("/syncs/%d", id)
	patch := func(change map[string]any) *answer { return w.do("PATCH", path, w.key, w.body(change)).want(200) }
	require.Equal(t, young, patch(w.of(map[string]any{"filter_segment_id": young})).id("data.filter_segment_id"))
	require.Equal(t, shown, patch(map[string]any{"source_attributes": shown, "filter_segment_id": grown}).at("data.source_attributes"))
	none := patch(w.of(nil))
	require.False(t, none.has("data.filter_segment_id"))
	require.Equal(t, "dataset", none.at("data.source_attributes.object.type"))
	w.remove(fmt.Sprintf("%s/%d", w.path, young), w.key)
}

// TestSegmentsThatAreNotThere are refused with their place.
func TestSegmentsThatAreNotThere(t *testing.T) {
	w := newSegmentWorld(t)
	grown := w.segment("Grown-ups", "age > 17")
	second := w.do("POST", "/datasets", w.key, dataset(w.source, "Others", "SELECT email, name FROM customers")).want(201).id("data.id")
	another := w.of(map[string]any{"filter_segment_id": grown})
	another["source_attributes"].(map[string]any)["object"] = map[string]any{"type": "dataset", "id": second}
	contradicts := w.of(map[string]any{"filter_segment_id": grown})
	contradicts["filter_segment_id"] = grown + 1
	for name, tc := range map[string]struct {
		change         map[string]any
		field, message string
	}{
		"unknown":            {w.of(map[string]any{"filter_segment_id": 999}), sources.SegmentField, "has no segment 999"},
		"of another dataset": {another, sources.SegmentField, "belongs to dataset"},
		"two of them":        {contradicts, sources.SegmentField, "contradicts"},
		"of a table":         {map[string]any{"filter_segment_id": grown}, "filter_segment_id", "type dataset"},
		"a cohort":           {map[string]any{"cohort_id": 6}, "cohort_id", "not supported"},
	} {
		got := w.refused(tc.change)
		require.Contains(t, got[tc.field], tc.message, "%s: %v", name, got)
	}
}

// TestSegmentMembership: a mapping gives the segments of each record, whichever of
// them the sync reads; records whose segments change are sent again.
func TestSegmentMembership(t *testing.T) {
	w := newSegmentWorld(t)
	w.segment("Grown-ups", "age > 17")
	named := w.segment("A-names", "name LIKE 'A%'")
	change := w.of(nil)
	change["mappings"] = []any{
		column("email", "email", true),
		column("name", "last_name", false),
		map[string]any{"from": map[string]any{"type": "segment_membership", "data": map[string]any{"identify_by": "name"}}, "to": "first_name"},
	}
	id := w.kept(change).id("data.id")
	require.Equal(t, [7]int64{5, 5, 0, 0, 5, 5, 0}, w.runs(id).counts())
	value := func(email string) string {
		for _, r := range w.stored() {
			if strings.Contains(r, email) {
				return r
			}
		}
		return ""
	}
	require.Contains(t, value("ada@"), `"first_name":"A-names, Grown-ups"`)
	require.Contains(t, value("alan@"), `"first_name":"A-names, Grown-ups"`)
	require.Contains(t, value("kay@"), `"first_name":null`)
	require.Equal(t, [7]int64{5, 0, 0, 0, 0, 0, 0}, w.runs(id).counts(), "nothing has changed")
	w.do("PATCH", fmt.Sprintf("%s/%d", w.path, named), w.key, map[string]any{"query": "name = 'Kay'", "name": "Kays"}).want(200)
	require.Equal(t, [7]int64{5, 3, 0, 0, 3, 3, 0}, w.runs(id).counts())
	require.Contains(t, value("kay@"), `"first_name":"Kays"`)
	require.Contains(t, value("ada@"), `"first_name":"Grown-ups"`)
	explained := w.explains(id, "kay@example.com")
	require.Contains(t, string(explained.text), "Kays")
}
