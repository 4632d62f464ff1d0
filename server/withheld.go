package server

import (
	"os"
	"path/filepath"
	"strings"
)

// filesFolder is what local_files destinations write, below the data directory.
const filesFolder = "files"

// withheld tells whether a path, absolute and without links, is none that a
// source may read: who may use the API must not get at the secrets behind it.
// What local_files destinations wrote below the data directory is theirs to read.
func (s *Server) withheld(path string) bool {
	for _, private := range s.config.Private {
		if within(private, path) {
			return true
		}
		// A hard link is another name for the same file.
		kept, err := os.Stat(private)
		if err != nil || !kept.Mode().IsRegular() {
			continue
		}
		if info, err := os.Stat(path); err == nil && os.SameFile(kept, info) {
			return true
		}
	}
	for _, dir := range s.config.dirs {
		if within(dir, path) && !within(filepath.Join(dir, filesFolder), path) {
			return true
		}
	}
	return false
}

// within tells whether a resolved path is a folder or lies below it.
func within(folder, path string) bool {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	rest, err := filepath.Rel(folder, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}
