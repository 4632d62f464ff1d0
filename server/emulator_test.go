package server

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/destination"
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
	return func(key string, objects []destination.EmulatedObject) (*destination.Emulated, error) {
		mu.Lock()
		defer mu.Unlock()
		sim := open[key]
		if sim == nil {
			var err error
			if sim, err = destsim.New(destsim.Config{Objects: simulated(objects)}); err != nil {
				return nil, err
			}
			open[key] = sim
		}
		return &destination.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: recordsOf(sim)}, nil
	}
}

// simulated translates the objects of the service into those of a simulator.
func simulated(objects []destination.EmulatedObject) []destsim.ObjectConfig {
	var out []destsim.ObjectConfig
	for _, o := range objects {
		config := destsim.ObjectConfig{
			Name: o.Object.APIName, Label: o.Object.Label, Operations: o.Operations,
			CanCreateFields: o.Object.CanCreateFields == "on_write",
		}
		for _, f := range o.Fields {
			createable, updateable := f.Createable, f.Updateable
			config.Fields = append(config.Fields, destsim.FieldConfig{
				Name: f.APIName, Label: f.Label, Type: f.Type, Array: f.Array, Identifier: f.Identifier,
				Required: f.Required, Createable: &createable, Updateable: &updateable,
			})
		}
		out = append(out, config)
	}
	return out
}

// recordsOf shows the stored records without what only a simulator knows.
func recordsOf(sim *destsim.Sim) func(string, int64, int) ([]json.RawMessage, int, error) {
	return func(object string, after int64, limit int) ([]json.RawMessage, int, error) {
		stored, total, err := sim.Records(object, after, limit)
		var out []json.RawMessage
		for _, record := range stored {
			out = append(out, api.Raw(record))
		}
		return out, total, err
	}
}
