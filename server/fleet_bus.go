package server

import (
	"context"
	"strconv"
	"sync"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/store"
)

// What processes tell each other. A notice may be lost, so each one only hastens
// what somebody finds out anyway.
const (
	topicHalt  = "halt"  // all that is done for a sync is to end: its id
	topicClock = "clock" // the clock was set
)

// notices are what this process does when others tell something. The zero value has
// nothing.
type notices struct {
	mu    sync.Mutex
	heard map[string][]func(text string)
}

// onNotice calls hear, which must be quick, for every notice of a topic, those of
// this process too; with "" when any may have been missed. Without a shared store it
// is never called.
func (s *Server) onNotice(topic string, hear func(text string)) {
	s.notices.mu.Lock()
	defer s.notices.mu.Unlock()
	if s.notices.heard == nil {
		s.notices.heard = map[string][]func(text string){}
	}
	s.notices.heard[topic] = append(s.notices.heard[topic], hear)
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

// listen hears what others tell until the end.
func (f *fleet) listen() {
	defer f.bus.Store(false)
	err := f.s.store.Listen(f.ctx, func(topic, text string) {
		if f.dead.Load() {
			return
		}
		f.bus.Store(true)
		if topic == "" {
			text = ""
		}
		for _, hear := range f.s.notices.of(topic) {
			hear(text)
		}
	})
	if err != nil && f.ctx.Err() == nil {
		f.s.log.Error("what other processes tell is not heard any more", "error", err)
	}
}

// hearFleet registers what a fleet does when others tell something.
func (s *Server) hearFleet() {
	number := func(fn func(id int64)) func(string) {
		return func(text string) {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				fn(id)
			}
		}
	}
	// Every role of the database may give notices: they only say where to look.
	s.onNotice(cluster.TopicCancel, number(func(id int64) {
		s.lookAtRuns(func(runID, _ int64) bool { return runID == id })
	}))
	s.onNotice(topicHalt, number(func(id int64) {
		s.lookAtRuns(func(_, syncID int64) bool { return syncID == id })
	}))
	s.onNotice(topicClock, func(string) {
		s.background.Later("take over the clock of the installation", func(context.Context) { s.fleet.hearClock() })
	})
	for _, topic := range []string{cluster.TopicSync, cluster.TopicRetry, cluster.TopicLive, cluster.TopicLook} {
		s.onNotice(topic, func(text string) {
			if r := s.fleet.leadership.Load(); r != nil {
				r.hear(topic, text)
			}
		})
	}
}

// lookAtRuns looks whether those of the runs that work here are really to end.
func (s *Server) lookAtRuns(which func(runID, syncID int64) bool) {
	for id, syncID := range s.engine.Working() {
		if which(id, syncID) {
			s.background.Later("look whether a run is to end", func(ctx context.Context) { s.fleet.lookForCancel(ctx, id) })
		}
	}
}

// tellLeader lets the leader know of something, with the change.
func (s *Server) tellLeader(tx *store.Tx, topic, text string) error {
	if s.leads() {
		return nil
	}
	return tx.Notify(topic, text)
}
