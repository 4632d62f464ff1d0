package report

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func names(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.json")
	require.NoError(t, WriteFile(JSON, file, sample()))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(render(t, JSON, sample())), string(b))
	require.NoError(t, WriteFile(Text, file, sample()), "a second run replaces the file")
	require.Equal(t, []string{"r.json"}, names(t, dir))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NotZero(t, info.Mode().Perm()&0o400)
}

func TestWriteFileThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o600))
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	require.NoError(t, WriteFile(Badge, link, sample()))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays a link")
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "the mode stays")
}

func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, WriteFile("jsn", filepath.Join(dir, "x"), sample()), `unknown format "jsn", known are text,`)
	require.ErrorContains(t, WriteFile(JSON, filepath.Join(dir, "no", "r.json"), sample()), "the folder does not exist")
	require.ErrorContains(t, WriteFile(JSON, dir, sample()), "it is a folder")
	require.ErrorContains(t, WriteFile(JSON, filepath.Join(dir, "x"), nil), "there is no report")
	require.Empty(t, names(t, dir))
}

// TestDiskFull: what cannot be written is said with the format and the file.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err == nil {
		err := WriteFile(JSON, "/dev/full", sample())
		require.ErrorContains(t, err, "write json report to /dev/full: the disk is full")
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}

// failing is a writer that fails after n bytes.
type failing struct{ n int }

var errBroken = errors.New("broken pipe")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriterErrorsAreReported(t *testing.T) {
	for _, format := range Formats() {
		require.ErrorIs(t, Write(format, &failing{}, sample()), errBroken, format)
	}
	require.ErrorIs(t, Write(JUnit, &failing{100}, sample()), errBroken)
	require.ErrorIs(t, WriteComparison(Text, &failing{}, Comparison{}), errBroken)
}
