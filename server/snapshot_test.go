package server

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
)

// populated is a world with something of every kind that a snapshot holds.
type populated struct {
	*world
	crm, warehouse int64
}

func populate(t testing.TB, change ...func(*Config)) populated {
	w := newWorld(t, change...)
	p := populated{world: w}
	p.crm = w.do("POST", "/destinations", w.key, map[string]any{"service_connection": emulatedConnection}).want(201).id("data.id")
	p.warehouse = w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "W", "type": "snowflake", "credentials": map[string]any{
		"account": "xy12345", "warehouse": "WH", "database": "DEMO", "user": "SYNC", "password": "warehouse-secret",
	}}}).want(201).id("data.id")
	w.newSync()
	p.record("ada@example.com")
	p.executes(p.warehouse, "CREATE TABLE EXTRA (A TEXT)")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	w.control("POST", "/clock", `{"set":"2030-01-01T00:00:00Z"}`).want(200)
	return p
}

func (p populated) record(email string) {
	write(p.t, p.world, p.crm, "Contact", fmt.Sprintf(`{"Email":%q,"LastName":"x"}`, email))
}

// look is everything that a snapshot must bring back.
func (p populated) look() string {
	text := worldOf(p.world)
	text += string(p.control("GET", fmt.Sprintf("/destinations/%d/records?object=Contact", p.crm), nil).want(200).text)
	return text + fmt.Sprint(p.control("GET", "/clock", nil).want(200).at("now"))
}

func (p populated) snapshot() []byte {
	p.t.Helper()
	a := p.control("GET", "/snapshot", nil).want(200)
	require.Equal(p.t, "application/x-tar", a.header.Get("Content-Type"))
	return a.text
}

// change does something everywhere.
func (p populated) change() {
	p.t.Helper()
	p.record("eve@example.com")
	p.executes(p.warehouse, "DROP TABLE EXTRA")
	p.do("POST", "/workspaces", p.pat, map[string]any{"name": "Afterwards"}).want(201)
	p.do("POST", "/destinations", p.key, map[string]any{"service_connection": emulatedConnection}).want(201)
	p.control("POST", "/clock", `{"advance":"48h"}`).want(200)
	p.fault(map[string]any{"kind": "status", "operation": "listConnectors"})
}

// same compares two worlds and shows only where they differ first.
func same(t testing.TB, want, got string) {
	t.Helper()
	at := 0
	for at < len(want) && at < len(got) && want[at] == got[at] {
		at++
	}
	if want != got {
		show := func(text string) string { return text[max(0, at-150):min(len(text), at+150)] }
		require.Equal(t, show(want), show(got))
	}
}

func inDir(t testing.TB) func(*Config) {
	return func(c *Config) {
		c.Dir, c.MasterKey = filepath.Join(t.TempDir(), "data"), bytes.Repeat([]byte{7}, 32)
	}
}

func TestRestoreBringsTheWorldBack(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			p := populate(t, where)
			before := p.look()
			kept := p.snapshot()
			p.change()
			require.NotEqual(t, before, p.look())
			p.control("POST", "/restore", kept).want(200)
			same(t, before, p.look())
			p.executes(p.warehouse, "INSERT INTO EXTRA VALUES ('there again')")
			require.Empty(t, p.control("GET", "/faults", nil).want(200).at("faults"))
			// Ids go on as they would have then.
			again := p.do("POST", "/workspaces", p.pat, map[string]any{"name": "Afterwards"}).want(201).id("data.id")
			require.EqualValues(t, 2, again)
			// And it can be done once more.
			p.control("POST", "/restore", kept).want(200)
			same(t, before, p.look())
			if dir := p.s.config.Dir; dir != "" {
				nothing(t, dir, "*.tmp")
			}
		})
	}
}

// TestStartFromSnapshot: another process goes on from a snapshot, or from a
// bare backup of the store.
func TestStartFromSnapshot(t *testing.T) {
	p := populate(t, inDir(t))
	before := p.look()
	kept := p.snapshot()
	second := newWorld(t, func(c *Config) {
		inDir(t)(c)
		c.Restore = bytes.NewReader(kept)
	})
	second.pat, second.key = p.pat, p.key
	require.Nil(t, second.s.FirstTokens(), "it has its organization already")
	same(t, before, populated{second, p.crm, p.warehouse}.look())

	backup := filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, store.Backup(t.Context(), p.s.config.Dir, backup))
	text := contentOf(t, backup)
	third := newWorld(t, func(c *Config) {
		inDir(t)(c)
		c.Restore = bytes.NewReader(text)
	})
	third.do("GET", "/syncs", p.key, nil).want(200)
}

// TestRestoreChangesNothingOnError: whatever is wrong with a snapshot, the
// world stays as it is.
func TestRestoreChangesNothingOnError(t *testing.T) {
	p := populate(t, inDir(t))
	kept := p.snapshot()
	p.change()
	p.control("DELETE", "/faults", nil).want(200)
	before := p.look()
	stranger := populate(t, func(c *Config) { c.MasterKey = bytes.Repeat([]byte{9}, 32) })
	for name, tc := range map[string]struct {
		text []byte
		code int
		want string
	}{
		"nothing":         {nil, 400, "no snapshot"},
		"text":            {[]byte("hello"), 400, "no snapshot"},
		"cut off":         {kept[:len(kept)/2], 400, "no snapshot"},
		"without a store": {retar(t, kept, func(name string, text []byte) []byte { return dropPart(name, "store.db", text) }), 400, "no snapshot"},
		"without a warehouse": {retar(t, kept, func(name string, text []byte) []byte {
			return dropPart(name, fmt.Sprintf("warehouses/%d", p.warehouse), text)
		}), 400, "is missing"},
		"of a later format": {retar(t, kept, func(name string, text []byte) []byte {
			return bytes.Replace(text, []byte(`"format": 2`), []byte(`"format": 3`), 1)
		}), 400, "format 3"},
		"without checksums": {retar(t, kept, func(name string, text []byte) []byte { return dropPart(name, archive.PartSums, text) }), 400, "checksums.json is missing"},
		"of another day in a part": {retar(t, kept, func(name string, text []byte) []byte {
			if name == archive.PartSums {
				text = bytes.Replace(text, []byte(`"store.db":"`), []byte(`"store.db":"0`), 1)
			}
			return text
		}), 400, "the checksum of store.db is wrong"},
		"with a broken simulator":  {retar(t, kept, func(name string, text []byte) []byte { return breakPart(name, "destinations/", text) }), 400, "nothing was changed"},
		"with a broken warehouse":  {retar(t, kept, func(name string, text []byte) []byte { return breakPart(name, "warehouses/", text) }), 400, "nothing was changed"},
		"with a broken store":      {retar(t, kept, func(name string, text []byte) []byte { return breakPart(name, "store.db", text) }), 400, ""},
		"under another master key": {stranger.snapshot(), 409, "another master key"},
	} {
		t.Run(name, func(t *testing.T) {
			a := p.control("POST", "/restore", tc.text).want(tc.code)
			require.Contains(t, a.at("message"), tc.want)
			same(t, before, p.look())
		})
	}
}

// saved is the state of a service.
func (w *world) saved() []byte {
	w.t.Helper()
	var state bytes.Buffer
	require.NoError(w.t, w.s.Snapshot(w.t.Context(), &state))
	return state.Bytes()
}

// nothing demands that no file in a folder has such a name.
func nothing(t testing.TB, dir string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		require.Empty(t, must(filepath.Glob(filepath.Join(dir, pattern)))(t))
	}
}

// retar rewrites the parts of a snapshot, with their checksums; a nil part is left out.
func retar(t *testing.T, snapshot []byte, change func(name string, text []byte) []byte) []byte {
	var out bytes.Buffer
	from, to := tar.NewReader(bytes.NewReader(snapshot)), tar.NewWriter(&out)
	sums := map[string]string{}
	for {
		header, err := from.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		text := must(io.ReadAll(from))(t)
		if header.Name == archive.PartSums {
			text = must(json.Marshal(sums))(t)
		}
		if text = change(header.Name, text); text == nil {
			continue
		}
		sum := sha256.Sum256(text)
		sums[header.Name] = hex.EncodeToString(sum[:])
		require.NoError(t, to.WriteHeader(&tar.Header{Name: header.Name, Mode: 0o600, Size: int64(len(text))}))
		must(to.Write(text))(t)
	}
	require.NoError(t, to.Close())
	return out.Bytes()
}

func dropPart(name, dropped string, text []byte) []byte {
	if name == dropped {
		return nil
	}
	return text
}

func breakPart(name, prefix string, text []byte) []byte {
	if strings.HasPrefix(name, prefix) {
		return text[:len(text)/2]
	}
	return text
}

// TestChangedSnapshot: whichever byte of a snapshot is another one, or wherever it ends,
// it is refused, or every part of it is as it was.
func TestChangedSnapshot(t *testing.T) {
	w := newSyncWorld(t)
	w.oneRun(w.kept(nil).id("data.id"))
	kept := w.control("GET", "/snapshot", nil).want(200).text
	parts := func(text []byte) (all map[string]string, err error) {
		a, err := archive.Read(bytes.NewReader(text), w.s.config.Dir)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		all = map[string]string{}
		for name := range a.Parts {
			part := must(io.ReadAll(a.Part(name)))(t)
			all[name] = string(part)
		}
		delete(all, archive.PartSums)
		return all, nil
	}
	want := must(parts(kept))(t)
	refused := 0
	check := func(text []byte, what string, at int) {
		got, err := parts(text)
		if err == nil {
			require.True(t, maps.Equal(want, got), "%s at %d of %d is not noticed", what, at, len(kept))
			return
		}
		require.ErrorIs(t, err, archive.ErrNone, "%s at %d", what, at)
		refused++
	}
	for at := 0; at < len(kept); at += 997 {
		bad := bytes.Clone(kept)
		bad[at] ^= 1 << (at % 8)
		check(bad, "a changed byte", at)
		check(kept[:at], "an end", at)
	}
	require.Greater(t, refused, len(kept)/997)
}

// TestSnapshotSealsSecrets: no credential is in it in the clear.
func TestSnapshotSealsSecrets(t *testing.T) {
	p := populate(t)
	text := p.snapshot()
	lacks(t, string(text), "client-secret-value", "warehouse-secret", "destination-token", "header-secret", p.pat, p.key)
	var meta archive.Meta
	head := tar.NewReader(bytes.NewReader(text))
	must(head.Next())(t)
	require.NoError(t, json.NewDecoder(head).Decode(&meta))
	require.Equal(t, archive.Format, meta.Format)
	require.True(t, meta.Clock.Frozen)
	require.Equal(t, []archive.Part{{ID: p.crm, Type: "salesforce"}}, meta.Destinations)
}
