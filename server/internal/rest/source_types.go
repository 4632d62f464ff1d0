package rest

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// listSourceTypes lists the kinds of sources that can be created (spec 2.10).
// They have no time of creation; the order of the catalogue stands for it.
func (h *Handlers) listSourceTypes(c *call.Call) (*call.Reply, error) {
	page, types := c.Page(), h.Sources.Types().Types()
	shown := []api.SourceType{}
	for _, t := range call.SlicePage(types, page) {
		t.ConfigurationFields = api.ConfigFields{Fields: h.Shared.Dialect.Fields(t.ConfigurationFields.Fields)}
		t.CreatableViaConnectLink = t.ConfigurationFields.Linkable()
		shown = append(shown, t)
	}
	return c.List(page, int64(len(types)), shown)
}
