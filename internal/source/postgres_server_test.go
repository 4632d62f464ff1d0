//go:build unix

package source

import (
	"os"
	"testing"

	"github.com/destkit/destkit/internal/testkit"
)

const postgresPassword = testkit.PostgresPassword

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

// postgresCredentials starts the server, once, and returns credentials with
// some changes.
func postgresCredentials(t testing.TB, changes map[string]any) map[string]any {
	t.Helper()
	values := testkit.StartPostgres(t).Credentials()
	for key, v := range changes {
		if values[key] = v; v == nil {
			delete(values, key)
		}
	}
	return values
}
