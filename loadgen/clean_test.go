package loadgen

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// TestCleanRefusesForeignKeys: a journal that was changed names keys that no load
// makes, and nothing of it is deleted.
func TestCleanRefusesForeignKeys(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Work.BatchSize, o.Count = 10, 3
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	before := stored(t, url)["contact"]
	require.Equal(t, 30, before)
	for name, change := range map[string]func(*WrittenKeys){
		"keys of people":  func(k *WrittenKeys) { k.Template = "customer-{n}" },
		"no run":          func(k *WrittenKeys) { k.Template = "zz-load--{n}" },
		"two numbers":     func(k *WrittenKeys) { k.Template = "zz-load-{n}-{n}" },
		"no number":       func(k *WrittenKeys) { k.Template = "zz-load-ab12cd" },
		"those of a rule": func(k *WrittenKeys) { k.Template = "zz-load-{run}-{n}" },
		"too many":        func(k *WrittenKeys) { k.Count = 2e12 },
	} {
		keys := append([]WrittenKeys{}, r.Keys...)
		change(&keys[0])
		_, err := Clean(context.Background(), Options{Target: Target{URL: url}}, keys)
		var usage *wire.UsageError
		require.ErrorAs(t, err, &usage, name)
		require.Equal(t, before, stored(t, url)["contact"], name)
	}
	_, err = Clean(context.Background(), Options{Target: Target{URL: url}}, r.Keys)
	require.NoError(t, err)
	require.Zero(t, stored(t, url)["contact"])
}

// TestIntegerKeysOfALoad: those between 2·10^12 and 3·10^12, or of the range that
// the caller gives again.
func TestIntegerKeysOfALoad(t *testing.T) {
	made := func(from, to int64) WrittenKeys {
		return WrittenKeys{Object: "contact", Field: "id", Type: rpc.TypeInteger, Count: 1, Keys: Keys{From: from, To: to}}
	}
	own, err := records.NewKeys("", "ab12cd", 0, 0)
	require.NoError(t, err)
	require.NoError(t, made(own.From, own.To).own(true, Options{}))
	for _, k := range []WrittenKeys{made(1, 100), made(1_999_999_999_999, 2_000_000_000_010), made(2_999_999_999_990, 3_000_000_000_000), made(9, 5)} {
		require.Error(t, k.own(true, Options{}), "%+v", k.Keys)
	}
	require.NoError(t, made(100, 199).own(true, Options{KeyFrom: 100, KeyTo: 199}))
	require.Error(t, made(99, 199).own(true, Options{KeyFrom: 100, KeyTo: 199}))
}

// TestCleanDeletesNoKeyBeyondTheLast: keys that are no whole number of batches are
// not filled up with those that follow.
func TestCleanDeletesNoKeyBeyondTheLast(t *testing.T) {
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Work.BatchSize, o.Count = 10, 4
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	keys := append([]WrittenKeys{}, r.Keys...)
	keys[0].Count = 33
	end, err := wire.NewEndpoint(wire.Target{URL: url}, wire.Transport{})
	require.NoError(t, err)
	d, err := discover(context.Background(), end, "", nil, []string{"contact"})
	require.NoError(t, err)
	require.Greater(t, d.Speed.MaximumBatchSize, int64(33))
	result, err := Clean(context.Background(), Options{Target: Target{URL: url}}, keys)
	require.NoError(t, err)
	require.Equal(t, &CleanupResult{Deleted: 33}, result)
	require.Equal(t, 7, stored(t, url)["contact"])

	// The first 20 of 33 are one batch that was cut short by the requested size.
	o.Seed++
	o.RunID = "ab12cd"
	r, err = Run(context.Background(), o)
	require.NoError(t, err)
	obj, err := d.Objects["contact"].ForOperation(rpc.OperationDelete, r.Keys[0].Field, nil)
	require.NoError(t, err)
	e := &engine{ctx: context.Background(), end: end, clock: pace.NewClock(), seed: 1, declared: *d, connections: 2}
	defer e.close()
	e.plan = &plan{size: 20, keys: records.Keys(r.Keys[0].Keys), tasks: []*task{{}}}
	g := &keyspace{object: obj}
	g.used.Store(33)
	erased := &CleanupResult{}
	e.erase(context.Background(), g, records.Keys(r.Keys[0].Keys), 2, nil, erased)
	require.Equal(t, &CleanupResult{Deleted: 33}, erased)
	require.Equal(t, 7+7, stored(t, url)["contact"])
}
