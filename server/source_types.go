package server

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/source"
)

// listSourceTypes lists the kinds of sources that can be created (spec 2.10).
// They have no time of creation; the order of the catalogue stands for it.
func (s *Server) listSourceTypes(c *call) (*reply, error) {
	page, types := c.page(), source.Types()
	shown := []api.SourceType{}
	for _, t := range slicePage(types, page) {
		t.ConfigurationFields = api.ConfigFields{Fields: s.dialect.fields(t.ConfigurationFields.Fields)}
		shown = append(shown, t)
	}
	return c.list(page, int64(len(types)), shown)
}

// sourceTypeNames are the words of "type" in a connection to a source.
func sourceTypeNames() []string {
	var names []string
	for _, t := range source.Types() {
		names = append(names, t.ServiceName)
	}
	return names
}
