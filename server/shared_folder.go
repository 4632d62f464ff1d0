package server

import "github.com/destkit/destkit/server/internal/sources"

// noFiles says why nothing can be written into files; "": it can.
func (s *Server) noFiles() string {
	if s.config.NoFiles {
		return sources.ErrNoFolder.Error()
	}
	return ""
}
