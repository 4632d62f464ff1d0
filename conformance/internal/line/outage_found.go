package line

import (
	"slices"

	"github.com/destkit/destkit/internal/quantity"
)

func (w *watch) All() []*Outage {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return slices.Clone(w.Outages)
}

// Names are the calls that were under way when the endpoint went away.
func (o *Outage) Names() string {
	names := []string{o.Call}
	for _, call := range o.Suspects {
		if !o.Silent && !slices.Contains(names, call.Name) {
			names = append(names, call.Name)
		}
	}
	return quantity.List(names)
}

// Forget takes back an outage that was called for.
func (w *watch) Forget(o *Outage) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Outages = slices.DeleteFunc(w.Outages, func(other *Outage) bool { return other == o })
}
