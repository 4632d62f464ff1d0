package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit/diskfault"
)

// TestFaultsUnderABackup: whichever operation of a backup fails, on either disk, the one
// before stays as it was, and nothing else is left.
func TestFaultsUnderABackup(t *testing.T) {
	matrixtest.Long(t)
	for _, c := range diskFaults {
		t.Run(c.name, func(t *testing.T) {
			f := newFaulty(t)
			require.NoError(t, f.put("kept", 30_000))
			folder := t.TempDir()
			to := filepath.Join(folder, "backup.db")
			other := diskfault.Under(t, folder)
			require.NoError(t, Backup(t.Context(), f.dir, to))
			require.NoError(t, f.put("later", 20))
			for n := 0; ; n += 1 + n/4 {
				was := contentOf(t, to)
				c.fault.After, c.fault.Times = n, 1
				other.Fail(c.fault)
				err := Backup(t.Context(), f.dir, to)
				if other.Heal() == 0 {
					require.NoError(t, err)
					return
				}
				if err != nil {
					require.ErrorIs(t, err, c.is)
					require.ErrorContains(t, err, to)
					now := contentOf(t, to)
					require.True(t, bytes.Equal(was, now))
				}
				left, err := os.ReadDir(folder)
				require.NoError(t, err)
				require.Len(t, left, 1)
				lost := filepath.Join(t.TempDir(), "lost")
				require.NoError(t, other.PowerLost(lost))
				from, err := os.Open(filepath.Join(lost, "backup.db"))
				require.NoError(t, err)
				restored, err := Open(t.Context(), Options{From: from, MasterKey: testKey})
				require.NoError(t, err)
				require.NoError(t, errors.Join(restored.Close(), from.Close()))
			}
		})
	}
}

// TestBackupOfADamagedLog: a backup of what a killed process has left refuses a log with a
// hole, as a start does, and leaves it as it is. While a process works, the log is its own.
func TestBackupOfADamagedLog(t *testing.T) {
	f := newFaulty(t)
	for _, key := range []string{"one", "two", "three"} {
		require.NoError(t, f.put(key, 10))
	}
	to := filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, Backup(t.Context(), f.dir, to))
	killed := f.killed()
	log := filepath.Join(killed, databaseFile+"-wal")
	text := contentOf(t, log)
	text[len(text)/2] ^= 1
	require.NoError(t, os.WriteFile(log, text, 0o600))
	err := Backup(t.Context(), killed, to)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "its log destkit.db-wal is damaged")
	kept := contentOf(t, log)
	require.True(t, bytes.Equal(text, kept))
}
