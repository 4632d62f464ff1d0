package testkit

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// WriteFile makes a file in a new folder.
func WriteFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// Rows reads the rows of a source as one JSON array each, and closes them.
func Rows(t testing.TB, rows interface {
	Next() ([][]byte, error)
	Close() error
}) (all []string) {
	t.Helper()
	defer func() { require.NoError(t, rows.Close()) }()
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		var cells []string
		for _, v := range values {
			require.True(t, json.Valid(v), "%s", v)
			cells = append(cells, string(v))
		}
		all = append(all, "["+strings.Join(cells, ",")+"]")
	}
}
