package executor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// files makes the destination of a world a folder with CSV files.
func (w *world) files(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	credentials, problems := w.gate.CheckConnection(api.TypeLocalFiles, destination.Credentials{"path": api.Raw(dir), "format": api.Raw("csv")}, nil)
	require.Empty(t, problems)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "people.csv"), []byte("id,name,level\n"), 0o600))
	connection, err := w.gate.Open(2, api.TypeLocalFiles, credentials)
	require.NoError(t, err)
	objects, err := connection.Objects(t.Context())
	require.NoError(t, err)
	for _, o := range objects {
		if strings.Contains(o.FullName, "people") {
			w.object = o
		}
	}
	w.sender, err = w.gate.Sender(2, api.TypeLocalFiles, credentials)
	require.NoError(t, err)
	w.config.DestinationAttributes.Object = w.object.FullName
	w.change = func(j *Job) {
		j.Connection, j.DestinationType = 2, api.TypeLocalFiles
		j.HiddenIdentifier = w.gate.HiddenIdentifier(api.TypeLocalFiles, w.object.FullName)
	}
	return filepath.Join(dir, "people.csv")
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestAppendAddsToAFileWithoutAnIdentifier(t *testing.T) {
	w := newWorld(t, setup{table: "id INTEGER, name TEXT, level INTEGER"})
	file := w.files(t)
	w.append(nil)
	w.config.Mappings[0].IsPrimaryIdentifier = false
	w.fill(1, 20)
	w.fill(1, 5)
	o := w.sync()
	require.Equal(t, api.RunCompleted, o.Status, "%+v", o)
	require.Equal(t, int64(25), o.Updated, "equal rows are rows")
	require.Len(t, lines(t, file), 26)
	require.Zero(t, w.sync().Processed)
	w.fill(3, 1)
	require.Equal(t, int64(1), w.sync().Updated)
	require.Len(t, lines(t, file), 27)
}
