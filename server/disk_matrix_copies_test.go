package server

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/archive"
)

// copyOfWorld is a backup or a snapshot of each of the two days.
type copyOfWorld struct{ earlier, now []byte }

// takeCopies makes both, and leaves the service as it is now.
func (w *diskWorld) takeCopies(kind string) (c copyOfWorld, lookEarlier string) {
	w.t.Helper()
	take := func() []byte {
		if kind == "snapshot" {
			return w.control("GET", "/snapshot", nil).want(200).text
		}
		to := filepath.Join(w.t.(*testing.T).TempDir(), "backup.db")
		require.NoError(w.t, Backup(w.t.Context(), w.dir, to))
		text := contentOf(w.t, to)
		return text
	}
	c.now = take()
	present, server := w.dir, w.s
	w.dir = w.earlier
	require.NoError(w.t, w.start())
	c.earlier, lookEarlier = take(), worldOf(w.world)
	w.stop()
	w.dir, w.s = present, server
	return c, lookEarlier
}

// copyHarms are those of one kind of copy. May accept: the harm may meet what means
// nothing, and then every value is as it was.
func copyHarms(kind string) (harms []diskHarm) {
	harms = append(damagedCopy(), diskHarm{"emptied", func([]byte, []byte) []byte { return []byte{} }})
	if kind == "snapshot" {
		harms = append(harms, diskHarm{"one part of an earlier day", mixedParts})
	}
	return harms
}

// mixedParts puts the database of the earlier snapshot into the later one.
func mixedParts(now, earlier []byte) []byte {
	part := func(text []byte) (part []byte) {
		for from := tar.NewReader(bytes.NewReader(text)); ; {
			header, err := from.Next()
			if err != nil {
				return part
			}
			if header.Name == archive.PartStore {
				part, _ = io.ReadAll(from)
			}
		}
	}
	other := part(earlier)
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for from := tar.NewReader(bytes.NewReader(now)); ; {
		header, err := from.Next()
		if err != nil {
			break
		}
		text, _ := io.ReadAll(from)
		if header.Name == archive.PartStore {
			text = other
		}
		header.Size = int64(len(text))
		_ = to.WriteHeader(header)
		_, _ = to.Write(text)
	}
	_ = to.Close()
	return out.Bytes()
}

// copyCells restore harmed copies: into a new directory, and into a service that works.
func copyCells() (cells []diskCellOfService) {
	for _, kind := range []string{"backup", "snapshot"} {
		for _, operation := range []string{"start from it", "restore"} {
			for _, harm := range copyHarms(kind) {
				mayAccept := strings.HasPrefix(harm.name, "a bit flipped") || harm.name == "cut by one byte"
				outcome := "refused: no whole copy; nothing changed"
				if mayAccept {
					outcome = "refused: no whole copy, nothing changed; or it met no value, and all is as it was"
				}
				cells = append(cells, diskCellOfService{kind, harm.name, operation, outcome, func(t *testing.T) {
					w := newDiskWorld(t, "mirror")
					c, _ := w.takeCopies(kind)
					w.restores(operation, bytes.NewReader(harm.does(c.now, c.earlier)), mayAccept)
				}})
			}
			cells = append(cells,
				diskCellOfService{kind, "a read that fails", operation, "refused: nothing changed", func(t *testing.T) {
					w := newDiskWorld(t, "mirror")
					c, _ := w.takeCopies(kind)
					w.restores(operation, io.MultiReader(bytes.NewReader(c.now[:len(c.now)/2]), iotest.ErrReader(errors.New("input/output error"))), false)
				}},
				diskCellOfService{kind, "of an earlier day", operation, "recovered: all of that day; the next run brings the destination to the present", func(t *testing.T) {
					w := newDiskWorld(t, "mirror")
					c, look := w.takeCopies(kind)
					w.look = look
					w.accepted(operation, w.takes(operation, bytes.NewReader(c.earlier)))
				}})
		}
	}
	return cells
}

// outcomeOfCopy is what became of a copy.
type outcomeOfCopy struct {
	err     string
	dir     string // of a new service
	started *Server
}

// takes hands a copy to the operation.
func (w *diskWorld) takes(operation string, from io.Reader) outcomeOfCopy {
	w.t.Helper()
	body, err := io.ReadAll(from)
	if operation == "start from it" {
		present, dir := w.s, filepath.Join(w.t.(*testing.T).TempDir(), "new")
		was := w.dir
		w.dir = dir
		failed := w.start(func(c *Config) { c.Restore = io.MultiReader(bytes.NewReader(body), errorAfter(err)) })
		w.dir = was
		if failed != nil {
			require.True(w.t, w.s == present)
			return outcomeOfCopy{failed.Error(), dir, nil}
		}
		return outcomeOfCopy{"", dir, w.s}
	}
	if err != nil { // a body that ends with an error is no bytes to send
		if failed := w.s.Restore(w.t.Context(), io.MultiReader(bytes.NewReader(body), errorAfter(err))); failed != nil {
			return outcomeOfCopy{err: failed.Error()}
		}
		return outcomeOfCopy{}
	}
	a := w.control("POST", "/restore", body)
	if a.code == 200 {
		return outcomeOfCopy{}
	}
	require.Equal(w.t, 400, a.code, string(a.text))
	return outcomeOfCopy{err: a.at("message").(string)}
}

func errorAfter(err error) io.Reader {
	if err == nil {
		return bytes.NewReader(nil)
	}
	return iotest.ErrReader(err)
}

// restores asserts that a damaged copy is refused or, with mayAccept, that every value
// in it is unchanged.
func (w *diskWorld) restores(operation string, from io.Reader, mayAccept bool) {
	w.t.Helper()
	got := w.takes(operation, from)
	if got.err == "" && mayAccept {
		w.accepted(operation, got)
		return
	}
	require.NotEmpty(w.t, got.err, "it was taken for whole")
	if got.dir != "" {
		nothing(w.t, got.dir, "destkit.db*")
	}
	nothing(w.t, w.dir, "*.tmp", "*.unfinished*")
	nothing(w.t, got.dir, "*.tmp", "*.unfinished*")
	w.whole()
}

// accepted asserts that the world is the one of the copy, and goes on.
func (w *diskWorld) accepted(operation string, got outcomeOfCopy) {
	w.t.Helper()
	require.Empty(w.t, got.err)
	if operation == "start from it" {
		defer func() { require.NoError(w.t, got.started.Close()) }()
	}
	w.whole()
}
