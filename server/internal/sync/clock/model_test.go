package clock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a clock in a few lines: a list that is sorted for each step.
type model struct {
	now  time.Duration
	seq  int
	list []planned
	log  []string
}

// planned is a function that, when it runs, registers its children.
type planned struct {
	at       time.Duration
	seq      int
	name     string
	children []time.Duration
}

func (m *model) add(d time.Duration, name string, children []time.Duration) {
	m.seq++
	m.list = append(m.list, planned{m.now + d, m.seq, name, children})
}

func (m *model) advance(d time.Duration) {
	target := m.now + d
	for len(m.list) > 0 {
		slices.SortFunc(m.list, func(a, b planned) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		first := m.list[0]
		if first.at > target {
			break
		}
		m.list = m.list[1:]
		m.now = max(m.now, first.at)
		m.log = append(m.log, first.name+" "+m.now.String())
		for i, d := range first.children {
			m.add(d, fmt.Sprintf("%s.%d", first.name, i), nil)
		}
	}
	m.now = target
}

// TestAgainstModel plays random plans, stops and advances.
func TestAgainstModel(t *testing.T) {
	delays := rapid.Map(rapid.IntRange(-1, 6), func(n int) time.Duration { return time.Duration(n) * time.Second })
	rapid.Check(t, func(rt *rapid.T) {
		c := New(nil)
		defer c.Close()
		c.Freeze(true)
		require.NoError(rt, c.Set(day))
		var d diary
		var m model
		timers := map[string]*Timer{}
		register := func(wait time.Duration, name string, children []time.Duration) {
			timers[name] = c.AfterFunc(wait, name, func(ctx context.Context) {
				d.note(c, name)(ctx)
				for i, wait := range children {
					child := fmt.Sprintf("%s.%d", name, i)
					timers[child] = c.AfterFunc(wait, child, d.note(c, child))
				}
			})
			m.add(wait, name, children)
		}
		for i := range rapid.IntRange(1, 15).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"add", "add", "stop", "advance", "set"}).Draw(rt, "step") {
			case "add": // positive, so that nothing runs before the next step
				register(max(delays.Draw(rt, "wait"), 1), fmt.Sprint(i), rapid.SliceOfN(delays, 0, 3).Draw(rt, "children"))
			case "stop":
				if len(m.list) > 0 {
					at := rapid.IntRange(0, len(m.list)-1).Draw(rt, "which")
					require.True(rt, timers[m.list[at].name].Stop())
					m.list = slices.Delete(m.list, at, at+1)
				}
			case "advance":
				wait := max(delays.Draw(rt, "way"), 0)
				before := len(m.log)
				m.advance(wait)
				report := advance(rt, c, wait)
				require.Equal(rt, len(m.log)-before, report.Count)
			case "set": // backwards: what waits has as long to wait as before
				m.now -= time.Second
				for i := range m.list {
					m.list[i].at -= time.Second
				}
				require.NoError(rt, c.Set(day.Add(m.now)))
			}
			require.Equal(rt, day.Add(m.now), c.Now())
			require.Len(rt, c.Waiting(), len(m.list))
		}
		require.Equal(rt, m.log, d.read())
	})
}
