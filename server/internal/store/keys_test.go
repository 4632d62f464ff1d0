package store

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

var otherKey = []byte("fedcba9876543210fedcba9876543210")

// secrets reads every secret of a world back.
func secrets(t testing.TB, s *Store, w *world) (found []string) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		keep := func(text string, err error) {
			t.Helper()
			require.NoError(t, err)
			found = append(found, text)
		}
		destination, err := tx.DestinationCredentials(w.Destination.ID)
		keep(string(destination["auth_token"]), err)
		source, err := tx.SourceCredentials(w.Source.ID)
		keep(string(source["password"]), err)
		keep(tx.WorkspaceKey(w.Workspace.ID))
		keep(tx.WebhookSecret(w.Webhook.ID))
		webhook, err := Webhooks.Read(tx, w.Workspace.ID, w.Webhook.ID)
		keep(webhook.Endpoint, err)
	})
	return found
}

func (w *world) secrets() []string {
	return []string{`"` + secretToken + `"`, `"` + secretPassword + `"`, w.Key, secretSigning, w.Webhook.Endpoint}
}

func TestTokensAndKeys(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
		require.True(t, strings.HasPrefix(w.Key, "secret-token:"))
		update(t, s, func(tx *Tx) {
			requireRow(t, w.User)(tx.AccessTokenOwner(w.Token))
			requireRow(t, w.Workspace)(tx.WorkspaceByKey(w.Key))
			_, err := tx.AccessTokenOwner(w.Key)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = tx.WorkspaceByKey(w.Token)
			require.ErrorIs(t, err, ErrNotFound)

			for range 2 { // again changes nothing
				require.NoError(t, tx.AdoptAccessToken(w.User.ID, "mine"))
				require.NoError(t, tx.AdoptWorkspaceKey(w.Workspace.ID, "given"))
			}
			requireRow(t, w.User)(tx.AccessTokenOwner("mine"))
			total, err := tx.number("SELECT count(*) FROM access_tokens WHERE user_id = ?", w.User.ID)
			require.NoError(t, err)
			require.EqualValues(t, 2, total)
			key, err := tx.WorkspaceKey(w.Workspace.ID)
			require.NoError(t, err)
			require.Equal(t, "given", key)
			_, err = tx.WorkspaceByKey(w.Key)
			require.ErrorIs(t, err, ErrNotFound)
			require.ErrorIs(t, tx.AdoptWorkspaceKey(99, "x"), ErrNotFound)

			bare := &Workspace{OrganizationID: w.Organization.ID, Name: "bare"}
			require.NoError(t, Workspaces.Create(tx, bare))
			_, err = tx.WorkspaceKey(bare.ID)
			require.ErrorIs(t, err, ErrNotFound)
		})
	})
}

// Tokens and keys come from the given source; the same seed gives the same.
func TestTokensFollowTheSeed(t *testing.T) {
	seeded := func() string {
		s := open(t, Options{Random: bytes.NewReader(slices.Repeat([]byte{1, 2, 3}, 200))})
		w := built(t, s)
		return w.Token + w.Key
	}
	require.Equal(t, seeded(), seeded())
	empty := open(t, Options{Random: bytes.NewReader(make([]byte, sealing.KeySize))}) // enough for the installation's key
	err := empty.Update(t.Context(), func(tx *Tx) error { return second(tx.NewAccessToken(1, "")) })
	require.ErrorContains(t, err, "make token")
}

// A sealed value that is moved to another row or column does not open.
func TestSealedValuesAreBoundToTheirPlace(t *testing.T) {
	for _, move := range []string{
		"UPDATE webhooks SET sealed_secret = sealed_endpoint",
		"UPDATE destinations SET sealed_credentials = (SELECT sealed_credentials FROM sources)",
		"UPDATE workspaces SET sealed_key = CAST(substr(sealed_key, 1, 20) AS BLOB)",
		"UPDATE workspaces SET sealed_key = x'01'",
		"UPDATE workspaces SET sealed_key = CAST(x'02' || substr(sealed_key, 2) AS BLOB)",
	} {
		s := open(t, Options{})
		w := built(t, s)
		update(t, s, func(tx *Tx) { require.NoError(t, second(tx.exec(move))) })
		failed := 0
		for _, read := range []func(tx *Tx) error{
			func(tx *Tx) error { return second(tx.WebhookSecret(w.Webhook.ID)) },
			func(tx *Tx) error { return second(tx.DestinationCredentials(w.Destination.ID)) },
			func(tx *Tx) error { return second(tx.WorkspaceKey(w.Workspace.ID)) },
		} {
			if err := s.View(t.Context(), read); err != nil {
				require.ErrorContains(t, err, "the sealed value does not open")
				failed++
			}
		}
		require.Equal(t, 1, failed, move)
	}
}

func TestWrongMasterKey(t *testing.T) {
	o := Options{}.a(t, onDisk)
	first := open(t, o)
	update(t, first, func(tx *Tx) { build(t, tx, "acme") })
	require.NoError(t, first.Close())
	for name, c := range map[string]struct {
		key  []byte
		want string
	}{
		"another one": {otherKey, ErrWrongKey.Error()},
		"none":        {nil, "a master key is needed"},
		"a short one": {[]byte("short"), "a key has 32 bytes, not 5"},
	} {
		o.MasterKey = c.key
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, name == "another one", strings.Contains(err.Error(), "wrong"))
	}
	o.MasterKey = testKey
	_ = open(t, o) // the right one still works
}

func TestRotateMasterKey(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
		token, err := s.SealText("https://x.example/secret")
		require.NoError(t, err)
		require.ErrorContains(t, s.RotateMasterKey(t.Context(), []byte("short")), "32 bytes")
		require.NoError(t, s.RotateMasterKey(t.Context(), otherKey))
		require.Equal(t, w.secrets(), secrets(t, s, w))
		text, err := s.UnsealText(token)
		require.NoError(t, err)
		require.Equal(t, "https://x.example/secret", text)
		update(t, s, func(tx *Tx) { build(t, tx, "later") })
		if s.memory {
			return
		}
		require.NoError(t, s.Close())
		o := Options{Dir: s.dir, MasterKey: testKey}
		_, err = Open(t.Context(), o)
		require.ErrorIs(t, err, ErrWrongKey)
		o.MasterKey = otherKey
		again := open(t, o)
		require.Equal(t, w.secrets(), secrets(t, again, w))
	})
}

func TestRotateDataKeys(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w, other := built(t, s), builtAs(t, s, "other")
		before := sealedValues(t, s)
		token, err := s.SealText("old log")
		require.NoError(t, err)
		require.NoError(t, s.RotateDataKeys(t.Context()))
		require.NoError(t, s.RotateDataKeys(t.Context()))
		require.Equal(t, w.secrets(), secrets(t, s, w))
		require.Equal(t, other.secrets(), secrets(t, s, other))
		after := sealedValues(t, s)
		require.Len(t, after, len(before))
		for i := range after {
			require.NotEqual(t, before[i], after[i])
		}
		text, err := s.UnsealText(token)
		require.NoError(t, err)
		require.Equal(t, "old log", text)
		view(t, s, func(tx *Tx) { // one key for each workspace, the installation's are kept
			for query, want := range map[string]int64{
				"SELECT count(*) FROM data_keys WHERE workspace_id IS NOT NULL":             2,
				"SELECT count(*) FROM data_keys WHERE workspace_id IS NULL":                 3,
				"SELECT count(*) FROM data_keys WHERE workspace_id IS NULL AND retired = 0": 1,
			} {
				n, err := tx.number(query)
				require.NoError(t, err)
				require.Equal(t, want, n, query)
			}
		})
	})
}

// sealedValues reads all sealed values as they are stored.
func sealedValues(t testing.TB, s *Store) (found [][]byte) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		for _, c := range sealedColumns {
			require.NoError(t, tx.query("SELECT "+c.Column+" FROM "+c.Table+" WHERE "+c.Column+" IS NOT NULL ORDER BY id",
				func(c sqlite.Row) error { found = append(found, c.Blob(0)); return nil }))
		}
	})
	return found
}

// Every sealed column of the schema is one that a rotation knows.
func TestRotationKnowsEverySealedColumn(t *testing.T) {
	s := open(t, Options{}) // the other databases have the same columns
	var known, inSchema []string
	for _, c := range sealedColumns {
		known = append(known, c.Table+"."+c.Column)
	}
	view(t, s, func(tx *Tx) {
		require.NoError(t, tx.query(`SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND c.name LIKE 'sealed%'`,
			func(c sqlite.Row) error { inSchema = append(inSchema, c.Text(0)); return nil }))
	})
	require.ElementsMatch(t, inSchema, known)
}

// A deleted workspace takes its data key along.
func TestDeletedWorkspaceLosesItsKey(t *testing.T) {
	s := open(t, Options{})
	update(t, s, func(tx *Tx) {
		w := build(t, tx, "acme")
		require.NoError(t, tx.DeleteOrganization(w.Organization.ID))
		n, err := tx.number("SELECT count(*) FROM data_keys WHERE workspace_id IS NOT NULL")
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// An undone transaction may have made a data key; the next one with that id is
// another key.
func TestUndoneDataKeys(t *testing.T) {
	s := open(t, Options{})
	_ = s.Update(t.Context(), func(tx *Tx) error { build(t, tx, "undone"); return ErrConflict })
	w := built(t, s)
	require.Equal(t, w.secrets(), secrets(t, s, w))
	require.NoError(t, s.RotateDataKeys(t.Context()))
	require.Equal(t, w.secrets(), secrets(t, s, w))
}

func TestSealText(t *testing.T) {
	s, other := open(t, Options{}), open(t, Options{})
	for _, text := range []string{"", "https://user:pw@x.example/p?q=1", "☃\x00"} {
		token, err := s.SealText(text)
		require.NoError(t, err)
		require.Regexp(t, `^sealed:[A-Za-z0-9_-]+$`, token)
		again, err := s.SealText(text)
		require.NoError(t, err)
		require.NotEqual(t, token, again)
		opened, err := s.UnsealText(" " + token + "\n")
		require.NoError(t, err)
		require.Equal(t, text, opened)
		for _, bad := range []string{token[:len(token)-2], token + "AA", strings.TrimPrefix(token, SealedPrefix), "sealed:", "sealed:?", ""} {
			_, err := s.UnsealText(bad)
			require.ErrorContains(t, err, "unseal text", bad)
		}
		_, err = other.UnsealText(token)
		require.ErrorContains(t, err, "another installation")
	}
}

func FuzzUnsealText(f *testing.F) {
	s, err := Open(f.Context(), Options{})
	require.NoError(f, err)
	token, err := s.SealText("text")
	require.NoError(f, err)
	f.Add(token)
	f.Add("sealed:AQAAAAAAAAAB")
	f.Fuzz(func(t *testing.T, bad string) {
		if text, err := s.UnsealText(bad); err == nil {
			require.Equal(t, "text", text)
		}
	})
}
