package server

import (
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// listSourceTypes lists the kinds of sources that can be created (spec 2.10).
// They have no time of creation; the order of the catalogue stands for it.
func (s *Server) listSourceTypes(c *call.Call) (*call.Reply, error) {
	page, types := c.Page(), s.sourceTypes().Types()
	shown := []api.SourceType{}
	for _, t := range call.SlicePage(types, page) {
		t.ConfigurationFields = api.ConfigFields{Fields: s.dialect.Fields(t.ConfigurationFields.Fields)}
		t.CreatableViaConnectLink = linkable(t.ConfigurationFields) && s.homeless(t.ServiceName) == nil
		shown = append(shown, t)
	}
	return c.List(page, int64(len(types)), shown)
}

// sourceTypes are the types that there are at this moment: those of the program,
// and those that were declared.
func (s *Server) sourceTypes() *source.Catalogue { return s.sources.Load() }

// sourceType describes one type; the zero value stands for an unknown one.
func (s *Server) sourceType(name string) source.Description {
	described, _ := s.sourceTypes().Type(name)
	return described
}

// sourceTypeNames are the words of "type" in a connection to a source.
func (s *Server) sourceTypeNames() []string {
	var names []string
	for _, t := range s.sourceTypes().Types() {
		names = append(names, t.ServiceName)
	}
	return names
}
