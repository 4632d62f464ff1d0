package loadgen

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/matrixtest"
)

// madeUp is a target with a service time and a parallelism: it takes
// parallel/service requests per second, with some noise.
type madeUp struct {
	base, perRecord float64 // seconds
	parallel        int
	noise           float64
	random          *rand.Rand
	rates           int
}

func (m *madeUp) most(batch, connections int) float64 {
	return float64(min(connections, m.parallel)) / (m.base + m.perRecord*float64(batch))
}

func (m *madeUp) near(v float64) float64 { return v * (1 + m.noise*(2*m.random.Float64()-1)) }

func (m *madeUp) closed(batch, connections int, _ time.Duration) (SearchStep, error) {
	return SearchStep{Kind: "closed", BatchSize: batch, Connections: connections, Reached: m.near(m.most(batch, connections)), Held: true}, nil
}

func (m *madeUp) rate(rate float64, batch, connections int, _ time.Duration, kind string) (SearchStep, error) {
	m.rates++
	most := m.near(m.most(batch, connections))
	return SearchStep{Kind: kind, Rate: rate, BatchSize: batch, Connections: connections, Reached: min(rate, most), Held: rate <= most}, nil
}

func TestSearchFindsAKnownLimit(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := &madeUp{base: 0.0005 + r.Float64()*0.01, perRecord: r.Float64() * 1e-5, parallel: 1 + r.IntN(24), noise: 0.005, random: r}
		s, err := Search{FixedBatch: true}.withDefaults()
		require.NoError(t, err)
		found, err := s.find(m, 100, 1000, 64)
		require.NoError(t, err)
		require.True(t, found.Confirmed)
		want := m.most(100, 64)
		require.InEpsilon(t, want, found.Rate, 0.05, "%d parallel", m.parallel)
		require.LessOrEqual(t, found.Knee, 2*m.parallel)
		require.GreaterOrEqual(t, 2*found.Knee, m.parallel)
		require.LessOrEqual(t, m.rates, 20, "a search must end within a minute")
		require.InEpsilon(t, want*100*0.8, float64(found.Suggested.RecordsPerSecond), 0.06)
	}
}

func TestSearchChoosesTheBatchSize(t *testing.T) {
	// Every batch costs as much as 900 records: large ones are worth it.
	m := &madeUp{base: 0.009, perRecord: 1e-5, parallel: 4, random: rand.New(rand.NewPCG(1, 1))}
	s, err := Search{}.withDefaults()
	require.NoError(t, err)
	found, err := s.find(m, 100, 1000, 64)
	require.NoError(t, err)
	require.Equal(t, 1000, found.BatchSize)
	// Batches cost nothing: all sizes are as fast, and the result names them.
	m = &madeUp{base: 1e-9, perRecord: 1e-4, parallel: 4, random: rand.New(rand.NewPCG(1, 1))}
	found, err = s.find(m, 1000, 1000, 64)
	require.NoError(t, err)
	require.ElementsMatch(t, []int{100, 250, 500, 1000}, append(found.Alike, found.BatchSize))
}

// refusing turns away what is beyond a rate, whatever the number of connections.
type refusing struct {
	madeUp
	most float64
}

func (l *refusing) closed(batch, connections int, d time.Duration) (SearchStep, error) {
	step, err := l.madeUp.closed(batch, connections, d)
	if step.Reached > l.most {
		step.Held, step.refused, step.taken = false, true, l.most
	}
	return step, err
}

func (l *refusing) rate(rate float64, batch, connections int, _ time.Duration, kind string) (SearchStep, error) {
	return SearchStep{Kind: kind, Rate: rate, Reached: rate, Held: rate <= l.most, refused: rate > l.most, busy: rate * l.base}, nil
}

// TestRefusedConnectionsAreNoKnee: a step that breaks the error limit neither counts nor is
// followed by more connections, and the parallelism follows from the confirmed rate.
func TestRefusedConnectionsAreNoKnee(t *testing.T) {
	l := &refusing{madeUp{base: 0.01, parallel: 64, random: rand.New(rand.NewPCG(1, 1))}, 250}
	s, err := Search{FixedBatch: true}.withDefaults()
	require.NoError(t, err)
	found, err := s.find(l, 10, 10, 64)
	require.NoError(t, err)
	require.True(t, found.Confirmed)
	require.InEpsilon(t, 250, found.Rate, 0.03)
	require.LessOrEqual(t, found.Knee, 2, "four connections are refused")
	most := 0
	for _, step := range found.Steps {
		if step.Kind == "closed" {
			most = max(most, step.Connections)
		}
	}
	require.Equal(t, 4, most, "the doubling ends at the first that is refused")

	l.most = 50 // one connection sends more
	found, err = s.find(l, 10, 10, 64)
	require.NoError(t, err)
	require.InEpsilon(t, 50, found.Rate, 0.03)
	require.EqualValues(t, 1, found.Suggested.Parallel)
}

// broken holds no rate at all.
type broken struct{ madeUp }

func (b *broken) rate(rate float64, batch, connections int, _ time.Duration, kind string) (SearchStep, error) {
	return SearchStep{Kind: kind, Rate: rate, Why: "errors"}, nil
}

func TestSearchOfATargetThatHoldsNothing(t *testing.T) {
	s, err := Search{}.withDefaults()
	require.NoError(t, err)
	found, err := s.find(&broken{madeUp{base: 0.01, parallel: 1, random: rand.New(rand.NewPCG(1, 1))}}, 10, 10, 4)
	require.NoError(t, err)
	require.False(t, found.Confirmed)
	require.Zero(t, found.Rate)
}

func TestMatrixSearchForReal(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("a search takes seconds")
	}
	url := simulator(t, destsim.Config{})
	o := against(url)
	o.Closed, o.Count, o.Connections, o.Work.BatchSize = false, 0, 1, 10
	// The delay makes the limit: one connection, 10 ms for every call.
	arm(t, url, `{"kind":"delay","delay":{"distribution":"fixed","ms":10},"when":{"method":"sync_batch"}}`)
	o.Search = &Search{FixedBatch: true, FixedConnections: true, Probe: 100 * time.Millisecond, Step: 200 * time.Millisecond, Confirm: 300 * time.Millisecond, Precision: 0.1}
	r, err := Run(context.Background(), o)
	require.NoError(t, err)
	require.NotNil(t, r.Search)
	require.Equal(t, "search", r.Load.Mode)
	require.Greater(t, len(r.Search.Steps), 3)
	require.Greater(t, r.Search.Rate, 10.0)
	require.Less(t, r.Search.Rate, 110.0, "no more than a call of 10 ms allows, within the precision asked for")
	require.NotZero(t, r.Search.Suggested.RecordsPerSecond)
	for words, s := range map[string]Search{"above 0": {Probe: -1}, "below 0.5": {Precision: 0.7}, "below 1": {Margin: 2}} {
		_, err := s.withDefaults()
		require.ErrorContains(t, err, words)
	}
}
