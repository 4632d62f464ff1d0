package rest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingAtSaysWhatWasMeant(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/sync":           "there is nothing at this path; did you mean /syncs?",
		"/api/v1/sync/7":         "there is nothing at this path; did you mean /syncs/7?",
		"/api/v1/destination":    "there is nothing at this path; did you mean /destinations?",
		"/syncs":                 "there is nothing at this path; the API is below /api/v1, did you mean /api/v1/syncs?",
		"/api/v1/nothing-so/far": "there is nothing at this path; the API is below /api/v1",
		"/api/v1/":               "there is nothing at this path; the API is below /api/v1",
		"/":                      "there is nothing at this path; the API is below /api/v1",
		"/favicon.ico":           "there is nothing at this path; the API is below /api/v1",
	} {
		require.Equal(t, want, NothingAt(path), path)
	}
}
