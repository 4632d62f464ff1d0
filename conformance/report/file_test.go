package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
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
	require.NoError(t, Options{}.WriteFile(JSON, file, sample()))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(render(t, JSON, sample())), string(b))
	require.NoError(t, Options{}.WriteFile(Text, file, sample()), "a second run replaces the file")
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
	require.NoError(t, Options{}.WriteFile(Badge, link, sample()))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays a link")
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "the mode stays")
}

func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, Options{}.WriteFile("jsn", filepath.Join(dir, "x"), sample()), `unknown format "jsn", known are text,`)
	require.ErrorContains(t, Options{}.WriteFile(JSON, filepath.Join(dir, "no", "r.json"), sample()), "the folder does not exist")
	require.ErrorContains(t, Options{}.WriteFile(JSON, dir, sample()), "it is a folder")
	require.ErrorContains(t, Options{}.WriteFile(JSON, filepath.Join(dir, "x"), nil), "there is no report")
	require.Empty(t, names(t, dir))
}

// TestDiskFull: a failed write is reported with the format and the file.
func TestDiskFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err == nil {
		err := Options{}.WriteFile(JSON, "/dev/full", sample())
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
		require.ErrorIs(t, Options{}.Write(format, &failing{}, sample()), errBroken, format)
	}
	require.ErrorIs(t, Options{}.Write(JUnit, &failing{100}, sample()), errBroken)
	require.ErrorIs(t, WriteComparison(Text, &failing{}, Comparison{}), errBroken)
}

func TestReadBack(t *testing.T) {
	for name, r := range reports() {
		if name == "poisoned" {
			continue // holds bytes that are no UTF-8, which the recorder never lets in
		}
		t.Run(name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(render(t, JSON, r)))
			require.NoError(t, err)
			want := whole(*r)
			require.Equal(t, &want, got)
		})
	}
}

func TestReadRefuses(t *testing.T) {
	good := string(render(t, JSON, sample()))
	tests := []struct{ name, in, want string }{
		{"nothing", " \n", "it is empty"},
		{"not JSON", "<testsuites/>", "line 1, column 1: not JSON"},
		{"cut off", good[:len(good)/2], "not JSON"},
		{"more behind it", good + "{}", "not JSON"},
		{"another file", `{"log":{}}`, "there is no schema_version, this is not a JSON report of destkit conform"},
		{"a newer version", strings.Replace(good, `"schema_version": "1"`, `"schema_version": "2"`, 1), "written by a newer destkit: schema_version 2, this one reads up to 1"},
		{"a number as version", strings.Replace(good, `"schema_version": "1"`, `"schema_version": 1`, 1), `schema_version is 1, this program reads "1"`},
		{"a wrong type", strings.Replace(good, `"calls": 212`, `"calls": "212"`, 1), "line 519, column 12: calls must be a whole number, not a string; expected the JSON report of destkit conform"},
		{"an unknown verdict", strings.Replace(good, `"verdict": "non-conformant"`, `"verdict": "fine"`, 1), `unknown verdict "fine"`},
		{"an unknown status", strings.Replace(good, `"status": "WARN"`, `"status": "OK"`, 1), `check RPC-009 has the unknown status "OK"`},
		{"an unknown level", strings.Replace(good, `"level": "INFO"`, `"level": "MAY"`, 1), `check RPC-017 has the unknown level "MAY"`},
		{"no id", strings.Replace(good, `"id": "RPC-001"`, `"id": ""`, 1), "checks[0] has no id"},
		{"an id twice", strings.Replace(good, `"id": "RPC-017"`, `"id": "RPC-001"`, 1), "check RPC-001 stands there twice"},
		{"an array", "[]", "line 1, column 1: the value must be an object, not a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.in))
			require.ErrorContains(t, err, "read report: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := Read(strings.NewReader("{\n  \"schema_version\": \"1\",\n  oops\n}"))
	require.ErrorContains(t, err, "line 3, column 3")
	_, err = Read(strings.NewReader(strings.Replace(good, `"calls": 212`, `"later": 1, "calls": 212`, 1)))
	require.NoError(t, err, "a member that is added within a version is ignored")
}

// FuzzRead demands that every report that it reads can be written in every format and read again.
func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	_ = Options{}.Write(JSON, &b, sample())
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema_version":"1","verdict":"unknown","checks":[{"id":"A","level":"MUST","status":"FAIL","findings":[{"exchanges":[{}]}]}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := Read(bytes.NewReader(in))
		if err != nil {
			return
		}
		for _, format := range Formats() {
			require.NoError(t, Options{}.Write(format, &bytes.Buffer{}, r))
		}
		var again bytes.Buffer
		require.NoError(t, Options{}.Write(JSON, &again, r))
		_, err = Read(&again)
		require.NoError(t, err)
		require.NotPanics(t, func() { Compare(r, &c.Report{}) })
	})
}
