package executor

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// history is one random life of a sync.
type history struct {
	t        *rapid.T
	clock    *clock.Clock
	dir      string // of the ledger; "": in memory
	images   int
	mortal   bool // its processes may be killed
	source   table
	store    *store
	sender   destination.Sender
	swaps    bool
	executor *Executor
	ledger   *ledger.Ledger
	model    *model
	mappings [][]string
	mapping  int
	empty    bool // allow_empty_source
	run      int64
	resume   bool
	ever     map[string]map[string]bool
	foreign  map[string]stored
	skipped  map[string]bool // rows that an append has taken as sent, perhaps
	tried    map[string]bool
	kill     kill
	tally    *historyTally
}

// kill names where the process is to die.
type kill struct {
	point string
	after int // passings of the point
	done  bool
	image string // the folder that the next process finds
}

// historyTally is what the histories of a test have been through.
type historyTally struct {
	mu                   sync.Mutex
	runs, resumed, ended int
	deaths, fates        map[string]int
	codes                map[string]int
}

// deaths are the points of executor and ledger.
func deathPoints() []string {
	return append([]string{"before-send", "after-send"}, ledger.CrashPoints()...)
}

// pass makes one run, or goes on with it, and compares it with the model.
func (h *history) pass() Outcome {
	if !h.resume {
		h.run++
	}
	resumed := h.resume
	h.model.run = h.run
	pairs := h.mappings[h.mapping]
	t := h.model.expect(h.source.rows, pairs)
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	h.store.end, h.store.words = end, map[string]word{}
	before, commits := maps.Clone(h.store.records), h.store.commits
	config := h.model.config(pairs...)
	config.AdvancedConfiguration = map[string]json.RawMessage{"allow_empty_source": api.Raw(h.empty)}
	job := Job{
		Run: h.run, Sync: 1, Config: config, Source: &h.source, Object: source.Object{Name: "t"},
		Columns: []api.Column{
			{Name: "id", Kind: api.KindInteger}, {Name: "level", Kind: api.KindInteger},
			{Name: "rank", Kind: api.KindInteger}, {Name: "at", Kind: api.KindInteger},
		},
		Destination: h.sender, DestinationObject: historyObject(), DestinationType: api.TypeCustomAPI, Connection: 1,
	}
	dry, dryErr := h.executor.DryRun(ctx, job, 2)
	o := h.executor.Run(ctx, job)
	// A run that was killed and then given up has left its log to this one. Where a
	// source fails depends on how often it is read.
	if !resumed && !h.kill.done && h.source.fails == 0 && !errors.Is(dryErr, ErrUnsettled) {
		requireForeseen(h.t, h.executor, dry, dryErr, o)
	}
	killed := h.kill.done
	completed := o.Status == api.RunCompleted && !killed
	require.Empty(h.t, h.store.twice)
	if t.skips && h.model.doubt && len(h.store.words) > 0 { // the first run had ended before its process was killed
		t.skips, h.model.ended = false, true
	}
	h.note(o, killed, resumed)
	for key := range h.store.words {
		h.tried[key] = true
	}
	if h.model.once() {
		h.settle(t, completed, killed)
	}
	by := t
	if completed {
		by = h.model.countedBy(t, h.source.rows, pairs, o.SourceRecords)
		h.counted(o, by, resumed)
	}
	h.model.learn(t, pairs, h.store.words, completed, killed)
	switch {
	case completed:
		h.arrived(by, pairs)
	case killed:
		h.reborn()
	case h.swaps && o.Status == api.RunFailed && h.store.commits == commits:
		require.Equal(h.t, before, h.store.records, "a run that failed has changed the table")
		if !resumed {
			require.Zero(h.t, o.Updated, "nothing counts before the table is replaced: %+v", o)
		}
	}
	h.resume = !completed && (killed || o.Status == api.RunWorking)
	return o
}

// settle keeps the rows that an append must never send again, and those
// it may have taken as sent.
func (h *history) settle(t *task, completed, killed bool) {
	for key, r := range t.valid {
		if t.skips {
			h.skipped[key] = true
		}
		at := ""
		if h.model.highWater {
			at = r["at"]
		}
		if w := h.store.words[key]; h.store.log && (w.success && !killed || t.skips && completed) {
			h.store.settled[key] = at
		}
	}
}

// counted compares the counters of a run that came to its end (spec 2.9).
func (h *history) counted(o Outcome, t *task, resumed bool) {
	info := fmt.Sprintf("%+v\nexpected %+v\nwords %v", o, *t, h.store.words)
	require.Equal(h.t, o.Processed, o.Updated+o.Failed, info)
	require.Equal(h.t, o.Processed, o.SourceUpdates+o.SourceDeletes, info)
	require.Equal(h.t, [3]int64{t.rows, t.invalid, t.invalid}, [3]int64{o.SourceRecords, o.SourceInvalids, o.Invalid}, info)
	updated, failed := map[string]bool{}, map[string]bool{}
	for key, w := range h.store.words {
		if w.success {
			updated[key] = true
		} else {
			failed[key] = true
		}
	}
	if h.swaps { // missing rows are gone with the old table
		maps.Copy(updated, t.remove)
	}
	if t.skips {
		require.Zero(h.t, o.Processed, info)
		require.Empty(h.t, h.store.words, info)
		return
	}
	for key := range either(updated, failed) {
		require.True(h.t, t.write[key] || t.mayWrite[key] || t.remove[key] || t.mayRemove[key], "record %s was not to be sent: %s", key, info)
	}
	if resumed || len(t.mayRemove) > 0 && h.swaps { // the passes before count too
		require.GreaterOrEqual(h.t, o.Updated, int64(len(updated)), info)
		require.GreaterOrEqual(h.t, o.Failed, int64(len(failed)), info)
		require.LessOrEqual(h.t, o.Processed, int64(len(h.tried)+len(h.model.keys)+len(t.valid)), info)
		return
	}
	require.Equal(h.t, [2]int64{int64(len(updated)), int64(len(failed))}, [2]int64{o.Updated, o.Failed}, info)
	between(h.t, o.SourceUpdates, t.write, t.mayWrite, info)
	between(h.t, o.SourceDeletes, t.remove, t.mayRemove, info)
}

func between(t require.TestingT, n int64, must, may map[string]bool, info string) {
	require.GreaterOrEqual(t, n, int64(len(must)), info)
	require.LessOrEqual(t, n, int64(len(either(must, may))), info)
}

// arrived compares the destination with the operation's promise after a
// completed run. Records that the run names as failed are excused, and nothing
// else.
func (h *history) arrived(t *task, pairs []string) {
	named := h.named()
	for key, r := range t.below {
		_, there := h.store.records[key]
		require.True(h.t, there || named[key], "record %s of %v lies below the mark of a run that ended", key, r)
	}
	for key, r := range t.valid {
		record, there := h.store.records[key]
		_, others := h.foreign[key]
		info := fmt.Sprintf("record %s of %v: stored %v, named %v", key, r, record, named)
		switch {
		case named[key], t.skips, h.model.operation == api.OperationAppend && h.skipped[key]:
		case h.model.once():
			require.True(h.t, there, info)
			if h.model.highWater {
				require.True(h.t, record.fields["at"] == r["at"] || h.store.settled[key] == r["at"], info)
			}
		case h.model.operation == api.OperationUpdate && !others: // not there, which is reported as a success
			require.False(h.t, there, info)
		default:
			require.True(h.t, there, info)
			for field, value := range r.mapped(pairs) {
				require.Equal(h.t, value, record.fields[field], info)
			}
		}
	}
	for key, record := range h.store.records {
		info := fmt.Sprintf("record %s is stored as %v, named %v", key, record, named)
		switch {
		case t.present[key], named[key] && !h.swaps:
		case h.swaps:
			require.Fail(h.t, "the table has more than the source: "+info)
		case h.model.deletes():
			require.False(h.t, h.tried[key], "it was to be deleted: "+info)
		}
		for field, value := range record.fields {
			_, others := h.foreign[key]
			require.True(h.t, others || h.ever[key+field][value], "the source never had this value: "+info)
		}
	}
	for key := range h.foreign {
		if !h.swaps && !h.tried[key] {
			require.Equal(h.t, h.foreign[key], h.store.records[key], "a record of somebody else")
		}
	}
}

// named are the records that the ledger of the run names as failed.
func (h *history) named() map[string]bool {
	list, total, err := h.ledger.Sync(1).Records(h.run, ledger.Filter{Verdict: ledger.Rejected}, 0, 1000)
	require.NoError(h.t, err)
	require.Len(h.t, list, int(total))
	out := map[string]bool{}
	for _, r := range list {
		require.NotEmpty(h.t, r.Message, "record %s has failed without a reason", r.Key)
		out[string(r.Key)] = true
	}
	return out
}

// crash is called at every point. At the kill the ledger is copied, even if
// torn, and nothing reaches the destination any more; what the old process
// still does is done to ledgers that are not opened again.
func (h *history) crash(point string) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if point != h.kill.point || h.store.dead {
		return
	}
	if h.kill.after--; h.kill.after != 0 {
		return
	}
	h.store.dead = true
	h.images++
	h.kill.image = h.dir + "-" + strconv.Itoa(h.images)
	copyBooks(h.kill.image, h.dir)
	h.kill.done = true
	h.store.end(ErrStop)
}

// copyBooks copies a folder of folders; files may go meanwhile.
func copyBooks(to, from string) {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, below), 0o700)
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, below), data, 0o600)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
}

// reborn is the next process.
func (h *history) reborn() {
	require.NoError(h.t, h.ledger.Close())
	require.NoError(h.t, os.RemoveAll(h.dir))
	h.dir, h.kill = h.kill.image, kill{}
	h.store.dead, h.store.next = false, nil
	h.open()
}

func (h *history) open() {
	var err error
	h.ledger, err = ledger.Open(ledger.Options{Dir: h.dir, Crash: h.crash})
	require.NoError(h.t, err)
	h.executor = New(Options{
		Clock: h.clock, Ledger: h.ledger, Grace: time.Nanosecond, Crash: h.crash, Random: func() float64 { return 0 },
		Backoff: Backoff{First: time.Nanosecond, Most: time.Nanosecond, Attempts: 2, Reach: 2, Rounds: 2},
	})
}

func (h *history) note(o Outcome, killed, resumed bool) {
	h.tally.mu.Lock()
	defer h.tally.mu.Unlock()
	h.tally.runs++
	if resumed {
		h.tally.resumed++
	}
	if killed {
		h.tally.deaths[h.kill.point]++
		return
	}
	h.tally.codes[o.Code]++
}

// change is one change of the source.
func (h *history) change() {
	id := strconv.Itoa(rapid.IntRange(1, 12).Draw(h.t, "id"))
	small := func(name string) string { return strconv.Itoa(rapid.IntRange(1, 3).Draw(h.t, name)) }
	one := row{"id": id, "level": small("level"), "rank": small("rank"), "at": strconv.Itoa(rapid.IntRange(1, 20).Draw(h.t, "at"))}
	others := slices.DeleteFunc(slices.Clone(h.source.rows), func(r row) bool { return r.key() == id })
	switch rapid.SampledFrom([]string{"set", "set", "set", "set", "delete", "double", "null", "no null", "no moment", "level null", "clear"}).Draw(h.t, "change") {
	case "set":
		h.source.rows = append(others, one)
	case "level null":
		one["level"] = "null"
		h.source.rows = append(others, one)
	case "no moment":
		one["at"] = "null"
		h.source.rows = append(others, one)
	case "delete":
		h.source.rows = others
	case "double":
		h.source.rows = append(h.source.rows, one)
	case "clear":
		h.source.rows = nil
	case "null":
		one["id"] = "null"
		h.source.rows = append(h.source.rows, one)
	case "no null":
		h.source.rows = slices.DeleteFunc(slices.Clone(h.source.rows), func(r row) bool { return r.key() == "null" })
	}
	for _, r := range h.source.rows {
		for _, pairs := range h.mappings {
			for field, value := range r.mapped(pairs) {
				if h.ever[r.key()+field] == nil {
					h.ever[r.key()+field] = map[string]bool{}
				}
				h.ever[r.key()+field][value] = true
			}
		}
	}
}

// disturb arms the failures of the next run.
func (h *history) disturb() {
	h.store.armed = nil
	if rapid.Bool().Draw(h.t, "bad calls") {
		h.store.armed = append(rapid.SliceOfN(rapid.SampledFrom(fates()), 1, 4).Draw(h.t, "fates"), "", "", "")
		h.store.seed = rapid.Uint32().Draw(h.t, "seed")
	}
	h.store.refuses = map[string]int{}
	for _, id := range rapid.SliceOfN(rapid.IntRange(1, 12), 0, 3).Draw(h.t, "refused") {
		h.store.refuses[strconv.Itoa(id)] = rapid.SampledFrom([]int{1, 2, 100}).Draw(h.t, "times")
	}
	h.source.fails = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 5}).Draw(h.t, "source fails")
	h.kill = kill{}
	if h.mortal && rapid.Bool().Draw(h.t, "kill") {
		h.kill = kill{point: rapid.SampledFrom(deathPoints()).Draw(h.t, "point"), after: rapid.SampledFrom([]int{1, 1, 2, 3, 5}).Draw(h.t, "passings")}
	}
}

func (h *history) calm() {
	h.store.armed, h.store.refuses, h.source.fails, h.kill = nil, nil, 0, kill{}
}

func historyObject() *api.DestinationObject {
	field := func(name string) api.DestinationField {
		return api.DestinationField{FullName: name, Label: name, Type: api.TypeInteger, CanBeUpsertKey: name == "id", Createable: true, Updateable: true}
	}
	return &api.DestinationObject{FullName: person, Label: "Person", Fields: []api.DestinationField{field("id"), field("level"), field("rank"), field("at")}}
}

// live is one history of an operation.
func live(t *rapid.T, p promise, c *clock.Clock, dir string, tally *historyTally) {
	h := &history{
		t: t, clock: c, model: newModel(p), ever: map[string]map[string]bool{}, foreign: map[string]stored{},
		skipped: map[string]bool{}, tried: map[string]bool{}, tally: tally,
		store: &store{records: map[string]stored{}, settled: map[string]string{}, seen: map[string]int{}},
	}
	h.mappings = [][]string{{"id:id", "level:level"}, {"id:id", "level:rank"}, {"id:id", "level:level", "rank:rank"}}
	if p.highWater {
		h.mappings = [][]string{{"id:id", "level:level", "at:at"}, {"id:id", "level:rank", "at:at"}}
	}
	h.mortal = rapid.IntRange(0, 2).Draw(t, "kills") > 0
	if h.mortal {
		h.dir = filepath.Join(dir, "books")
		defer func() { _ = os.RemoveAll(h.dir) }()
	}
	h.store.log = p.operation == api.OperationAppend
	h.store.skipGood = rapid.Bool().Draw(t, "skips are successes")
	h.store.parallel = rapid.SampledFrom([]int64{1, 1, 3}).Draw(t, "parallel")
	h.source.shuffled = rapid.IntRange(0, 3).Draw(t, "shuffled") == 0
	h.empty = rapid.IntRange(0, 4).Draw(t, "allow empty") > 0
	h.sender = h.store
	if p.strategy == api.MirrorSwap && rapid.Bool().Draw(t, "replaceable") {
		h.sender, h.swaps, h.model.swapped = swapStore{h.store}, true, true
	}
	if !h.store.log {
		for _, id := range []string{"1", "2", "3", "4", "40", "41"} {
			h.foreign[id] = stored{map[string]string{"id": id, "level": "9", "rank": "9"}, 1}
		}
		h.store.records = maps.Clone(h.foreign)
	}
	h.open()
	for range rapid.IntRange(1, 6).Draw(t, "runs") {
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			h.change()
		}
		if rapid.IntRange(0, 5).Draw(t, "other mapping") == 0 {
			h.mapping = rapid.IntRange(0, len(h.mappings)-1).Draw(t, "mapping")
		}
		h.disturb()
		if h.resume && rapid.IntRange(0, 3).Draw(t, "abandon") == 0 {
			h.resume = false
		}
		h.pass()
		if h.resume && rapid.Bool().Draw(t, "at once") {
			h.calm()
			h.pass()
		}
	}
	h.end()
}

// end lets everything go well twice: then nothing is left to do.
func (h *history) end() {
	h.empty = true
	for range 2 {
		h.calm()
		o := h.pass()
		require.Equal(h.t, api.RunCompleted, o.Status, "%+v", o)
	}
	h.calm()
	o := h.pass()
	require.Equal(h.t, api.RunCompleted, o.Status, "%+v", o)
	t := h.model.expect(h.source.rows, h.mappings[h.mapping])
	if h.store.skipGood || h.store.log || h.model.operation != api.OperationInsert && h.model.operation != api.OperationUpdate {
		require.Zero(h.t, o.Failed, "%+v", o)
		if h.model.strategy != api.MirrorSwap {
			require.Zero(h.t, o.Processed, "nothing is left to do: %+v, %+v", o, t)
		}
	}
	for key, record := range h.store.records {
		if h.store.log && h.store.seen[fateStored]+h.store.seen[fateHalf]+h.store.seen[fateLost]+h.store.seen[fateSilent]+
			h.store.seen[fateDoubtful]+h.store.seen[fateRejects] == 0 && !h.mortal && !h.model.highWater {
			require.Equal(h.t, 1, record.copies, "record %s was added twice and no answer was lost", key)
		}
	}
	require.NoError(h.t, h.ledger.Close())
	h.tally.mu.Lock()
	defer h.tally.mu.Unlock()
	h.tally.ended++
	for fate, n := range h.store.seen {
		h.tally.fates[fate] += n
	}
}

// memoryFolder is a folder in memory where the machine has one: every kill copies
// the ledger, and every append waits for the disk.
func memoryFolder(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "destkit-histories-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// TestHistoriesMatrix lets random histories of inserts, updates, deletes,
// duplicates, refusals, lost answers, crashes and changed mappings run, and
// holds each run against the model. A failure is printed with the seed and the
// file that replay it: go test -run 'TestHistoriesMatrix/NAME' -rapid.seed=SEED.
func TestHistoriesMatrix(t *testing.T) {
	each := "56" // of nine operations: 500 in all
	switch {
	case testing.Short():
		each = "30"
	case matrixtest.Whole():
		each = "1112" // 10,000
	}
	tally := histories(t, each)
	if !matrixtest.Whole() || t.Failed() || matrixtest.Named() { // a few histories may miss rare draws
		return
	}
	require.Positive(t, tally.resumed)
	for _, point := range deathPoints() {
		require.Positive(t, tally.deaths[point], "no process died at %s", point)
	}
	for _, fate := range fates() {
		require.Positive(t, tally.fates[fate], "never drawn: %s", fate)
	}
	for _, code := range []string{"", CodeCanceled, CodeSource, CodeEmptySource, CodeUnreachable} {
		require.Positive(t, tally.codes[code], "no run ended with code %q", code)
	}
}

// histories makes so many of each operation.
func histories(t *testing.T, each string) *historyTally {
	tally := &historyTally{deaths: map[string]int{}, fates: map[string]int{}, codes: map[string]int{}}
	checks := flag.Lookup("rapid.checks")
	if was := checks.Value.String(); was == checks.DefValue {
		require.NoError(t, flag.Set("rapid.checks", each))
		t.Cleanup(func() { require.NoError(t, flag.Set("rapid.checks", was)) })
	}
	t.Run("operations", func(t *testing.T) {
		for _, p := range promises() {
			t.Run(strings.ReplaceAll(p.name, ", ", "-"), func(t *testing.T) {
				t.Parallel()
				c := clock.New(nil)
				t.Cleanup(c.Close)
				dir := memoryFolder(t)
				rapid.Check(t, func(t *rapid.T) { live(t, p, c, dir, tally) })
			})
		}
	})
	t.Logf("%d histories, %d runs, %d resumed; killed at %v; calls %v; ends of runs %v", tally.ended, tally.runs, tally.resumed, tally.deaths, tally.fates, tally.codes)
	return tally
}
