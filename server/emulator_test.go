package server

import (
	"sync"
	"testing"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// emulator keeps the records of emulated destinations in simulators in memory,
// as the program does.
func emulator(t testing.TB) destination.Emulator {
	var mu sync.Mutex
	open := map[string]*destsim.Sim{}
	t.Cleanup(func() {
		for _, sim := range open {
			sim.Close()
		}
	})
	return func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
		mu.Lock()
		defer mu.Unlock()
		sim := open[key]
		if sim == nil {
			var err error
			var config destsim.Config
			for _, o := range objects {
				config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
			}
			if sim, err = destsim.New(config); err != nil {
				return nil, err
			}
			open[key] = sim
		}
		return &destination.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON}, nil
	}
}
