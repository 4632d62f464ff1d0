package server

import (
	"errors"

	"github.com/destkit/destkit/internal/source"
)

// errNoFolder refuses what lies in files where several processes may be at work
// that share no folder: each would find other files, or none.
var errNoFolder = errors.New("it lies in files, and the processes of this service share no folder: start all of them with the same data directory (--data), or use a type that lies elsewhere")

// inFiles reports whether a source is read from files of this machine.
func inFiles(described source.Description) bool {
	return described.File || described.Emulated || described.ServiceName == "sqlite"
}

// homeless says why a source of a type cannot be opened here.
func (s *Server) homeless(typ string) error {
	if s.config.NoFiles && inFiles(s.sourceType(typ)) {
		return errNoFolder
	}
	return nil
}

// noFiles says why nothing can be written into files; "": it can.
func (s *Server) noFiles() string {
	if s.config.NoFiles {
		return errNoFolder.Error()
	}
	return ""
}
