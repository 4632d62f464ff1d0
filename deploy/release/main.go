// Command release makes what goreleaser does not, from the programs that it has built:
// the packages for npm and the image. `make release` runs it after goreleaser with the
// root of the repository as argument. It publishes nothing, and the same programs give
// the same bytes.
//
// It is a module apart, so that destkit does not depend on what packs it.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release ROOT, the root of the repository, with programs of goreleaser in build/release")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(root string) error {
	r, err := readRelease(filepath.Join(root, "build", "release"))
	if err != nil {
		return err
	}
	if err := writeNPM(root, r); err != nil {
		return fmt.Errorf("npm packages: %w", err)
	}
	if err := writeImage(r); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

// release is what goreleaser has made.
type release struct {
	dir      string
	version  string // without v
	commit   string
	when     time.Time // of the commit
	programs []program
}

// program is destkit for one platform, in the words of Go.
type program struct{ path, goos, goarch string }

// readRelease reads the lists that goreleaser writes into the folder of a release.
func readRelease(dir string) (release, error) {
	r := release{dir: dir}
	var metadata struct{ Version, Commit string }
	if err := readJSON(filepath.Join(dir, "metadata.json"), &metadata); err != nil {
		return r, err
	}
	var artifacts []struct {
		Type, Path, Goos, Goarch string
	}
	if err := readJSON(filepath.Join(dir, "artifacts.json"), &artifacts); err != nil {
		return r, err
	}
	r.version, r.commit = metadata.Version, metadata.Commit
	for _, a := range artifacts {
		if a.Type != "Binary" {
			continue
		}
		// goreleaser names them from the root, where it runs.
		r.programs = append(r.programs, program{filepath.Join(dir, "..", "..", a.Path), a.Goos, a.Goarch})
	}
	if len(r.programs) == 0 {
		return r, errors.New("goreleaser has built no program: run make release")
	}
	info, err := os.Stat(r.programs[0].path)
	if err != nil {
		return r, err
	}
	r.when = info.ModTime().UTC() // mod_timestamp in .goreleaser.yaml
	return r, nil
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("decode %s: %w", file, err)
	}
	return nil
}
