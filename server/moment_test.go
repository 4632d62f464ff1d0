package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// slowCopies lets the copies of emulated destinations stand still behind their first
// byte. begun has one value for each.
func slowCopies(t *testing.T) (change func(*Config), begun <-chan struct{}, goOn func()) {
	began, free := make(chan struct{}, 100), make(chan struct{})
	goOn = sync.OnceFunc(func() { close(free) })
	t.Cleanup(goOn)
	return func(c *Config) {
		inner := c.Emulate
		c.Emulate = func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
			kept, err := inner(key, objects)
			if err != nil {
				return nil, err
			}
			slow := *kept
			slow.Snapshot = func(w io.Writer) error {
				var whole bytes.Buffer
				if err := kept.Snapshot(&whole); err != nil {
					return err
				}
				if _, err := w.Write(whole.Next(1)); err != nil {
					return err
				}
				began <- struct{}{}
				<-free
				_, err := w.Write(whole.Bytes())
				return err
			}
			return &slow, nil
		}
	}, began, goOn
}

// TestNobodyWaitsForACopy: while the copies of a snapshot are made calls write, runs
// begin and end, and another snapshot takes its moment. What came later is not in it.
func TestNobodyWaitsForACopy(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			slow, begun, goOn := slowCopies(t)
			w := newSyncWorld(t, where, slow)
			w.emulated("google_sheets")
			id := w.kept(nil).id("data.id")
			first := make(chan []byte, 1)
			go func() { first <- w.control("GET", "/snapshot", nil).want(200).text }()
			<-begun
			run := w.trigger(id)
			require.NoError(t, w.s.Settle(t.Context()))
			require.Equal(t, "completed", w.status(run))
			w.control("POST", "/organizations", `{"name":"Later"}`).want(201)
			require.Empty(t, first, "the copy is still being made")
			ctx, giveUp := context.WithCancel(t.Context())
			second := make(chan error, 1)
			go func() { second <- w.s.Snapshot(ctx, io.Discard) }()
			<-begun
			giveUp()
			goOn()
			require.ErrorIs(t, <-second, context.Canceled)

			w.control("POST", "/restore", <-first).want(200)
			require.NotContains(t, string(w.control("GET", "/organizations", nil).want(200).text), "Later")
			require.Empty(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data"))
			w.nothingHeld()
		})
	}
}
