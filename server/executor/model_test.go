package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/clock"
	"github.com/destkit/destkit/server/destination"
	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/source"
)

// table is a source in memory: the values of each id, more than one for a
// duplicate, and rows without an id.
type table struct {
	rows  map[int][]int
	nulls int
	fails int // reading fails after so many rows; 0: never
}

// Rows implements source.Reader.
func (s *table) Rows(_ context.Context, _ source.Object, columns, order []string) (source.Rows, error) {
	var all [][]string
	for id, values := range s.rows {
		for _, v := range values {
			all = append(all, []string{strconv.Itoa(id), strconv.Itoa(v)})
		}
	}
	for i := range s.nulls {
		all = append(all, []string{"null", strconv.Itoa(i)})
	}
	slices.SortFunc(all, slices.Compare)
	if len(order) == 0 {
		slices.Reverse(all)
	}
	if !slices.Equal(columns, []string{"id", "level"}) {
		return nil, fmt.Errorf("asked for %v", columns)
	}
	return &tableRows{all: all, fails: s.fails}, nil
}

type tableRows struct {
	all   [][]string
	at    int
	fails int
}

func (r *tableRows) Next() ([][]byte, error) {
	if r.fails > 0 && r.at >= r.fails {
		return nil, fmt.Errorf("the source has gone")
	}
	if r.at == len(r.all) {
		return nil, io.EOF
	}
	r.at++
	return [][]byte{[]byte(r.all[r.at-1][0]), []byte(r.all[r.at-1][1])}, nil
}

func (r *tableRows) Close() error { return nil }

// store is a destination in memory with the semantics of spec 4.2, and with
// things that go wrong: what happens to a call is drawn for each.
type store struct {
	mu      sync.Mutex
	records map[int]int
	fate    func() string
	refuses map[int]bool
	kill    context.CancelCauseFunc
	lost    int // calls whose effect or answer got lost
}

func (s *store) Speed(context.Context) (destination.Speed, error) {
	return destination.Speed{Speed: rpc.Speed{MaximumBatchSize: 3, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 1_000_000}}, nil
}

func (s *store) Close() error { return nil }

func (s *store) Send(_ context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var reply destination.Reply
	fate := s.fate()
	if fate != "" {
		s.lost++
	}
	n := len(records)
	switch fate {
	case "refused", "killed before":
		n = 0
	case "half stored":
		n /= 2
	}
	for _, raw := range records[:n] {
		var record map[string]int
		if err := json.Unmarshal(raw, &record); err != nil {
			return reply, err
		}
		ok := !s.refuses[record["id"]]
		_, there := s.records[record["id"]]
		switch plan.Operation {
		case rpc.OperationInsert:
			ok = ok && !there
		case rpc.OperationUpdate:
			ok = ok && there
		}
		switch {
		case !ok:
		case plan.Operation == rpc.OperationDelete:
			delete(s.records, record["id"])
		default:
			s.records[record["id"]] = record["level"]
		}
		reply.Results = append(reply.Results, rpc.RecordResult{Identifier: []byte(strconv.Itoa(record["id"])), Success: ok, ErrorMessage: ""})
	}
	switch fate {
	case "":
		return reply, nil
	case "killed before", "killed after":
		s.kill(ErrStop)
		return reply, &destination.CallError{Outcome: destination.OutcomeCanceled}
	case "some verdicts":
		reply.Results = reply.Results[:len(reply.Results)/2]
		return reply, nil
	}
	return destination.Reply{}, &destination.CallError{Outcome: destination.OutcomeTimeout, Message: fate}
}

// history is one random life of a sync.
type history struct {
	t         *rapid.T
	source    table
	store     store
	executor  *Executor
	ledger    *ledger.Ledger
	config    api.SyncConfig
	object    api.DestinationObject
	run       int64
	resume    bool
	delivered map[int]map[int]bool // every value that a key ever had
}

func (h *history) sync() Outcome {
	ctx, kill := context.WithCancelCause(context.Background())
	defer kill(nil)
	h.store.kill = kill
	if !h.resume {
		h.run++
	}
	o := h.executor.Run(ctx, Job{
		Run: h.run, Sync: 1, Config: h.config, Source: &h.source, Object: source.Object{Name: "t"},
		Columns:     []api.Column{{Name: "id", Kind: api.KindInteger}, {Name: "level", Kind: api.KindInteger}},
		Destination: &h.store, DestinationObject: &h.object, DestinationType: api.TypeCustomAPI, Connection: 1,
	})
	require.Equal(h.t, o.Processed, o.Updated+o.Failed, "%+v", o)
	h.resume = false
	return o
}

// change is one change of the source.
func (h *history) change() {
	id := rapid.IntRange(1, 12).Draw(h.t, "id")
	level := rapid.IntRange(1, 3).Draw(h.t, "level")
	switch rapid.SampledFrom([]string{"set", "set", "set", "delete", "double", "null"}).Draw(h.t, "change") {
	case "set":
		h.source.rows[id] = []int{level}
	case "delete":
		delete(h.source.rows, id)
	case "double":
		h.source.rows[id] = []int{level, level}
	case "null":
		h.source.nulls = 1 - h.source.nulls
	}
	h.note()
}

func (h *history) note() {
	for id, values := range h.source.rows {
		if h.delivered[id] == nil {
			h.delivered[id] = map[int]bool{}
		}
		for _, v := range values {
			h.delivered[id][v] = true
		}
	}
}

// disturbed is a run in which things go wrong.
func (h *history) disturbed() {
	fates := []string{"", "", "", "refused", "half stored", "reply lost", "some verdicts"}
	if rapid.Bool().Draw(h.t, "kills") {
		fates = append(fates, "killed before", "killed after")
	}
	seed := rapid.Uint32().Draw(h.t, "fates")
	h.store.fate = func() string {
		seed = seed*1664525 + 1013904223
		return fates[int(seed>>16)%len(fates)]
	}
	h.store.refuses = map[int]bool{}
	for _, id := range rapid.SliceOfN(rapid.IntRange(1, 12), 0, 3).Draw(h.t, "refused") {
		h.store.refuses[id] = true
	}
	h.source.fails = rapid.SampledFrom([]int{0, 0, 0, 1, 5}).Draw(h.t, "source fails")
	o := h.sync()
	h.resume = o.Status == api.RunWorking && rapid.Bool().Draw(h.t, "resume")
	h.calm()
}

func (h *history) calm() {
	h.store.fate, h.store.refuses, h.source.fails = func() string { return "" }, nil, 0
}

// valid are the rows that a sync may send.
func (h *history) valid() map[int]int {
	out := map[int]int{}
	for id, values := range h.source.rows {
		if len(values) == 1 {
			out[id] = values[0]
		}
	}
	return out
}

// check says what each operation promises once nothing goes wrong any more.
func (h *history) check(foreign map[int]int) {
	valid := h.valid()
	switch h.config.Operation {
	case api.OperationUpsert:
		for id, level := range valid {
			require.Equal(h.t, level, h.store.records[id], "record %d", id)
		}
	case api.OperationMirror:
		for id, level := range valid {
			require.Equal(h.t, level, h.store.records[id], "record %d", id)
		}
		for id := range h.store.records {
			_, own := valid[id]
			require.True(h.t, own || len(h.source.rows[id]) > 1, "record %d was to be deleted", id)
		}
	case api.OperationUpdate:
		for id := range h.store.records {
			if level, ok := valid[id]; ok {
				require.Equal(h.t, level, h.store.records[id], "record %d", id)
			}
			require.Contains(h.t, foreign, id, "an update creates nothing")
		}
	case api.OperationInsert:
		for id := range valid {
			require.Contains(h.t, h.store.records, id)
		}
	}
	for id, level := range h.store.records {
		require.True(h.t, h.delivered[id][level] || foreign[id] == level, "record %d has a value that the source never had", id)
	}
}

func TestEveryHistoryEndsAsPromised(t *testing.T) {
	c := clock.New(nil)
	t.Cleanup(c.Close)
	var lost, resumed int
	rapid.Check(t, func(t *rapid.T) {
		books, err := ledger.Open(ledger.Options{})
		require.NoError(t, err)
		h := &history{
			t: t, source: table{rows: map[int][]int{}}, store: store{records: map[int]int{}},
			executor:  New(Options{Clock: c, Ledger: books, Grace: time.Nanosecond, Backoff: Backoff{First: time.Nanosecond, Most: time.Nanosecond, Tries: 2}}),
			ledger:    books,
			config:    config(rapid.SampledFrom([]string{api.OperationUpsert, api.OperationMirror, api.OperationUpdate, api.OperationInsert}).Draw(t, "operation"), "id:id", "level:level"),
			object:    api.DestinationObject{FullName: person, Fields: []api.DestinationField{{FullName: "id", Type: api.TypeInteger, CanBeUpsertKey: true}, {FullName: "level", Type: api.TypeInteger}}},
			delivered: map[int]map[int]bool{},
		}
		h.config.AdvancedConfiguration = map[string]json.RawMessage{"allow_empty_source": api.Raw(true)}
		if h.config.Operation == api.OperationMirror && rapid.Bool().Draw(t, "swap") {
			h.config.MirrorStrategy = api.Ptr(api.MirrorSwap)
		}
		foreign := map[int]int{}
		if h.config.Operation == api.OperationUpdate {
			foreign = map[int]int{1: 9, 2: 9, 3: 9, 4: 9}
			h.store.records = maps.Clone(foreign)
		}
		for range rapid.IntRange(1, 8).Draw(t, "runs") {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				h.change()
			}
			h.disturbed()
			if h.resume {
				resumed++
			}
		}
		h.calm()
		if h.resume {
			require.Equal(t, api.RunCompleted, h.sync().Status)
		}
		o := h.sync()
		require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
		lost += h.store.lost
		h.check(foreign)
		if h.config.Operation == api.OperationUpsert || h.config.Operation == api.OperationMirror && h.config.MirrorStrategy == nil {
			require.Zero(t, o.Failed)
			require.Zero(t, h.sync().Processed, "nothing is left to do")
		}
	})
	require.Positive(t, lost)
	require.Positive(t, resumed)
}
