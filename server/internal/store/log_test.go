package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDamagedLog: whichever bit of the log of a killed process is another one, no change
// but the last can be missing in what opens; else it says that it is damaged.
func TestDamagedLog(t *testing.T) {
	const changes = 12
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, Options{Dir: dir, MasterKey: testKey})
	for i := range changes {
		update(t, s, func(tx *Tx) { require.NoError(t, tx.SetSetting("change", strconv.Itoa(i+1))) })
	}
	killed := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	log := filepath.Join(killed, databaseFile+"-wal")
	good, err := os.ReadFile(log)
	require.NoError(t, err)
	database, err := os.ReadFile(filepath.Join(killed, databaseFile))
	require.NoError(t, err)
	opened := func(text []byte) (change int, err error) {
		dir := filepath.Join(t.TempDir(), "data")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), database, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile+"-wal"), text, 0o600))
		s, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
		if err != nil {
			left, readErr := os.ReadFile(filepath.Join(dir, databaseFile+"-wal"))
			require.NoError(t, readErr)
			require.True(t, bytes.Equal(text, left), "the log was changed")
			return 0, err
		}
		view(t, s, func(tx *Tx) {
			value, err := tx.Setting("change")
			require.NoError(t, err)
			change, err = strconv.Atoi(value)
			require.NoError(t, err)
		})
		require.NoError(t, s.Close())
		return change, nil
	}
	change, err := opened(good)
	require.NoError(t, err)
	require.Equal(t, changes, change)
	refused, places := 0, []int{0, 3, 9, 16, 20, 30, len(good) - 1}
	for at := 32; at < len(good); at += 7919 {
		places = append(places, at)
	}
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		change, err := opened(bad)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged, "byte %d of %d", at, len(good))
			require.ErrorContains(t, err, "its log destkit.db-wal is damaged")
			refused++
			continue
		}
		require.GreaterOrEqual(t, change, changes-1, "byte %d of %d", at, len(good))
	}
	require.Greater(t, refused, len(places)/2)
	for _, torn := range [][]byte{good[:len(good)-1], good[:len(good)-100], append(bytes.Clone(good), make([]byte, 5000)...), append(bytes.Clone(good), good[32:32+24]...)} {
		change, err := opened(torn)
		require.NoError(t, err)
		require.GreaterOrEqual(t, change, changes-1)
	}
}
