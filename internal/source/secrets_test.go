package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetails(t *testing.T) {
	valid := validCredentials()
	require.Equal(t, map[string]any{"host": "db.example.com", "port": int64(5433), "database": "crm", "username": "sync", "sslmode": "require"},
		Details("postgres", credentials(valid["postgres"])))
	require.Equal(t, map[string]any{"project_id": "my-project-123", "location": "US", "service_account": "a@example.com", "location_editable": true}, Details("big_query", credentials(valid["big_query"])))
	require.Equal(t, map[string]any{}, Details("topic_log", nil))
	require.Equal(t, map[string]any{}, Details("oracle", nil))
	got := Details("generator", map[string]json.RawMessage{"rows": json.RawMessage("1"), "seed": json.RawMessage("1152921504606846977"), "columns": json.RawMessage("null"), "x": json.RawMessage("1")})
	require.Equal(t, map[string]any{"rows": int64(1), "seed": int64(1<<60 + 1)}, got, "exact, and only what is known")
}

func TestSecrets(t *testing.T) {
	valid := validCredentials()
	require.Equal(t, []string{"pg-secret"}, Secrets("postgres", credentials(valid["postgres"])))
	require.Empty(t, Secrets("sqlite", credentials(valid["sqlite"])))
	require.Empty(t, Secrets("oracle", nil))
	require.ElementsMatch(t, []string{`a\"b`, `a"b`}, Secrets("postgres", credentials(map[string]any{"password": `a"b`})), "escaped too")

	for _, key := range []any{valid["big_query"]["service_account_key"], string(mustJSON(t, valid["big_query"]["service_account_key"]))} {
		got := Secrets("big_query", credentials(map[string]any{"service_account_key": key}))
		require.Contains(t, got, "-----BEGIN\nbig-secret")
		require.Contains(t, got, `-----BEGIN\nbig-secret`)
		require.NotContains(t, got, "service_account")
		require.NotContains(t, got, "a@example.com")
	}
}

func mustJSON(t *testing.T, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

func TestClean(t *testing.T) {
	secrets := []string{"longer-secret", "secret", "abc"}
	require.NoError(t, clean(nil, secrets))
	plain := errors.New("abc is too short to be looked for")
	require.Same(t, plain, clean(plain, secrets))

	err := clean(fmt.Errorf("open with longer-secret: %w", ErrNoTable), secrets)
	require.EqualError(t, err, "open with [secret]: no such table")
	require.ErrorIs(t, err, ErrNoTable)
	require.NotErrorIs(t, err, ErrNoColumn)

	var q *QueryError
	require.ErrorAs(t, clean(&QueryError{Message: "no secret here", Position: 3}, secrets), &q)
	require.Equal(t, &QueryError{Message: "no [secret] here", Position: 3}, q)
}
