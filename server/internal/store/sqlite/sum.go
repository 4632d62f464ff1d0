package sqlite

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
)

// SQLite has no checksums of its pages: a bit that a disk changes within a value is
// another value. So a stop leaves the checksum in a file next to the database, and the
// next start compares the two. A killed process leaves none; then SQLite checks
// whether its pages still hold together, which takes several times as long.

const (
	// sumEnd makes the name of the file from that of the
	sumEnd = "-sum"
	// settingSession names the start that a database was last written by: a checksum of
	// another session is that of another file.
	settingSession = "session"
)

// stoppedSum is what a stop leaves.
type stoppedSum struct {
	Session string `json:"session"`
	Size    int64  `json:"size"`
	CRC     string `json:"crc32c"`
}

// sumOfFile reads a whole database that this process has no connection to: to close the
// file again drops the locks that a process holds on it.
func sumOfFile(path string) (s stoppedSum, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	s.Size, err = io.Copy(sum, f)
	s.CRC = hex.EncodeToString(sum.Sum(nil))
	return s, err
}

// write stores the checksum with a checksum: torn or damaged, it counts for nothing. It
// need not be durable.
func (s stoppedSum) write(path string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(path+sumEnd, append(text, fmt.Sprintf("\n%08x\n", crc32.ChecksumIEEE(text))...), 0o600)
}

// readSum reads what a stop has left; ok: there is something, and it is whole.
func readSum(path string) (s stoppedSum, ok bool) {
	text, err := os.ReadFile(path + sumEnd)
	if err != nil {
		return s, false
	}
	line, own, _ := strings.Cut(string(text), "\n")
	if own != fmt.Sprintf("%08x\n", crc32.ChecksumIEEE([]byte(line))) || json.Unmarshal([]byte(line), &s) != nil {
		return stoppedSum{}, false
	}
	return s, true
}

// unchanged compares the database with what the last stop left, before a connection
// that writes is opened; false: there is nothing to compare it with.
func (f *Files) unchanged() (bool, error) {
	// One with a log was not stopped, or another process reads it: then its file is
	// incomplete.
	if info, err := os.Stat(f.path + "-wal"); err == nil && info.Size() > 0 {
		return false, nil
	}
	was, ok := readSum(f.path)
	if !ok {
		return false, nil
	}
	now, err := sumOfFile(f.path)
	if err != nil || now.Size == 0 {
		return false, err
	}
	c, err := f.look()
	if err != nil {
		return false, err
	}
	defer c.Close()
	setting := func(key string) (value string) {
		// The checks below report what cannot be read here.
		_ = c.Query(readSetting, func(c Row) error { value = c.Text(0); return nil }, key)
		return value
	}
	switch {
	// Another file has taken the place; a backup has a checksum within.
	case setting(settingSession) != was.Session, setting(SettingCopied) != "":
		return false, nil
	case now.Size != was.Size || now.CRC != was.CRC:
		return false, fmt.Errorf("%w: it is not as the service left it at its last stop, so a disk or another program has changed it (if that was meant, remove %s)",
			ErrDamaged, databaseFile+sumEnd)
	}
	return true, nil
}

// look opens a connection that changes nothing, not even the kind of journal.
func (f *Files) look() (*Conn, error) {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return nil, err
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	file := url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1"}
	return connect(file.String(), sqlite.OpenReadOnly|sqlite.OpenURI)
}

const readSetting = "SELECT value FROM settings WHERE key = ?"

// holdsTogether refuses a database whose pages do not fit each other, and a backup that
// was put in its place and is not as it was made.
func (c *Conn) holdsTogether() error {
	first, faults := "", 0
	err := c.Query("SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok'", func(c Row) error {
		if faults++; faults == 1 {
			first = c.Text(0)
		}
		return nil
	})
	if err == nil && faults > 0 {
		err = cmp.Or(unreadPage(first), fmt.Errorf("%w: it has %d faults, the first: %s", ErrDamaged, faults, first))
	}
	if err != nil {
		return err
	}
	if err := c.intact(); errors.Is(err, ErrNotACopy) {
		return fmt.Errorf("%w: it is a backup, and its checksum is wrong", ErrDamaged)
	} else if err != nil {
		return err
	}
	return nil
}

// forgetSum takes the checksum away, durably, before the database changes.
func (f *Files) forgetSum() error {
	if err := os.Remove(f.path + sumEnd); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	return syncFolder(f.dir)
}

// leaveSum is for a store that has closed its connections. Without the file the next
// start takes longer and sees less, so a failure here is no error.
func (f *Files) leaveSum(session string) {
	if info, err := os.Stat(f.path + "-wal"); session == "" || err == nil && info.Size() > 0 {
		return
	}
	sum, err := sumOfFile(f.path)
	sum.Session = session
	if err == nil {
		err = sum.write(f.path)
	}
	if err != nil {
		_ = os.Remove(f.path + sumEnd)
	}
}

// BeginSession names the session with its first change, by a setting that is a part of
// it; one that only reads leaves the checksum as it is.
func (f *Files) BeginSession(keep func(key, value string) error) error {
	if f.session {
		return nil
	}
	if err := keep(settingSession, rand.Text()); err != nil {
		return err
	}
	return f.forgetSum()
}

// Begun notes that the session has its name, which the first commit that succeeds gives
// it.
func (f *Files) Begun() { f.session = true }

// Session reads the name of the session, for a store that is no longer in use; "":
// it cannot be read.
func (f *Files) Session(c *Conn) (name string) {
	_, err := c.Run(readSetting, func(c Row) error { name = c.Text(0); return nil }, settingSession)
	if err != nil {
		return ""
	}
	return name
}
