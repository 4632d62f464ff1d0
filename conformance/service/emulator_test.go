package service_test

import (
	"sync"
	"testing"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// emulating lets a service keep the records of emulated destinations in
// simulators in memory, as the program does.
func emulating(t *testing.T, config server.Config) server.Config {
	var mu sync.Mutex
	open := map[string]*destsim.Sim{}
	t.Cleanup(func() {
		for _, sim := range open {
			sim.Close()
		}
	})
	config.Emulate = func(key string, objects []server.EmulatedObject) (*server.Emulated, error) {
		mu.Lock()
		defer mu.Unlock()
		sim := open[key]
		if sim == nil {
			var simulated destsim.Config
			for _, o := range objects {
				simulated.Objects = append(simulated.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
			}
			var err error
			if sim, err = destsim.New(simulated); err != nil {
				return nil, err
			}
			open[key] = sim
		}
		return &server.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON}, nil
	}
	return config
}
