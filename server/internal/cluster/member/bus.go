package member

import (
	"context"
	"strconv"
	"sync"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/store"
)

// What processes tell each other. A notice may be lost, so each one only hastens
// what is found out anyway.
const (
	TopicHalt  = "halt"  // all that is done for a sync is to end: its id
	TopicClock = "clock" // the clock was set
)

// notices are what this process does when others tell something. The zero value has
// nothing.
type notices struct {
	mu    sync.Mutex
	heard map[string][]func(text string)
}

// OnNotice calls hear, which must be quick, for every notice of a topic, those of
// this process too; with "" when any may have been missed. Without a shared store it
// is never called.
func (m *Member) OnNotice(topic string, hear func(text string)) {
	m.notices.mu.Lock()
	defer m.notices.mu.Unlock()
	if m.notices.heard == nil {
		m.notices.heard = map[string][]func(text string){}
	}
	m.notices.heard[topic] = append(m.notices.heard[topic], hear)
}

// of are those who hear a topic; "" is all of them.
func (n *notices) of(topic string) (list []func(string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, hear := range n.heard {
		if name == topic || topic == "" {
			list = append(list, hear...)
		}
	}
	return list
}

// Missed lets all that hears notices look for itself, as after a connection that was lost.
func (m *Member) Missed() {
	for _, hear := range m.notices.of("") {
		hear("")
	}
}

// Listen begins to hear what others tell, until the end.
func (m *Member) Listen() { m.work.Go(m.listen) }

func (m *Member) listen() {
	defer m.bus.Store(false)
	err := m.Shared.Store.Listen(m.ctx, func(topic, text string) {
		if m.dead.Load() {
			return
		}
		m.bus.Store(true)
		if topic == "" {
			text = ""
		}
		for _, hear := range m.notices.of(topic) {
			hear(text)
		}
	})
	if err != nil && m.ctx.Err() == nil {
		m.Log.Error("what other processes tell is not heard any more", "error", err)
	}
}

// hear registers what a member does when others tell something.
func (m *Member) hear() {
	number := func(fn func(id int64)) func(string) {
		return func(text string) {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				fn(id)
			}
		}
	}
	// Every role of the database may give notices: they only say where to look.
	m.OnNotice(cluster.TopicCancel, number(func(id int64) {
		m.lookAtRuns(func(runID, _ int64) bool { return runID == id })
	}))
	m.OnNotice(TopicHalt, number(func(id int64) {
		m.lookAtRuns(func(_, syncID int64) bool { return syncID == id })
	}))
	m.OnNotice(TopicClock, func(string) {
		m.Work.Later("take over the clock of the installation", func(context.Context) { m.hearClock() })
	})
	for _, topic := range []string{cluster.TopicSync, cluster.TopicRetry, cluster.TopicLive, cluster.TopicLook} {
		m.OnNotice(topic, func(text string) {
			if r := m.leadership.Load(); r != nil {
				r.hear(topic, text)
			}
		})
	}
}

// lookAtRuns looks whether those of the runs that work here are really to end.
func (m *Member) lookAtRuns(which func(runID, syncID int64) bool) {
	for id, syncID := range m.Engine.Working() {
		if which(id, syncID) {
			m.Work.Later("look whether a run is to end", func(ctx context.Context) { m.lookForCancel(ctx, id) })
		}
	}
}

// Tell lets the leader know of something, with the change.
func (m *Member) Tell(tx *store.Tx, topic, text string) error {
	if m.Leads() {
		return nil
	}
	return tx.Notify(topic, text)
}
