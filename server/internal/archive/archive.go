// Package archive owns the form of a snapshot: a tar stream with meta.json first, then the
// store, then the records of every emulated destination, the tables of every emulated
// warehouse and the ledger of every sync that has run, and at last the checksums of all of
// these. Secrets in it stay sealed under the master key. The content of the parts is left
// to those who write and restore them.
package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// The parts of a snapshot. Format is the one that is written.
const (
	Format            = 2
	PartSums          = "checksums.json"
	PartMeta          = "meta.json"
	PartStore         = "store.db"
	PartDestination   = "destinations/%d"
	PartWarehouse     = "warehouses/%d"
	PartLedger        = "ledgers/%d"
	sqliteFileHeading = "SQLite format 3\x00"
)

// Meta describes a snapshot.
type Meta struct {
	Format   int         `json:"format"`
	Version  string      `json:"version"` // of the program
	Dialect  string      `json:"dialect"`
	TakenAt  time.Time   `json:"taken_at"` // on the service's clock
	Clock    clock.State `json:"clock"`
	Requests int64       `json:"requests"` // the last id of a request
	// Destinations and Warehouses are the ids of the parts with their types.
	Destinations []Part `json:"destinations"`
	Warehouses   []Part `json:"warehouses"`
	// Ledgers are the syncs whose books are parts.
	Ledgers []Part `json:"ledgers"`
}

// Part names a part; its type selects the reader.
type Part struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

// Archive is a snapshot that was read: all its parts are there, by their names. A copy of
// the store alone has no other part.
type Archive struct {
	Meta  Meta
	Parts map[string]*io.SectionReader
	spool *Spool
}

// Close lets go of what the snapshot was read into.
func (a *Archive) Close() { a.spool.Close() }

// ErrNone means that a stream is no snapshot.
var ErrNone = errors.New("this is no snapshot of destkit")

// Read spools a snapshot and checks that it is whole. Other things are refused at their
// first bytes: a wrong file can be of any size. A bare copy of the store, which is what a
// backup is, counts as a snapshot without parts.
func Read(r io.Reader, dir string) (*Archive, error) {
	head := make([]byte, 512) // the header of a tar stream
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	bare := bytes.HasPrefix(head, []byte(sqliteFileHeading))
	if !bare && string(head[257:262]) != "ustar" {
		return nil, fmt.Errorf("read snapshot: %w", ErrNone)
	}
	spooled, err := NewSpool(dir)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(spooled, io.MultiReader(bytes.NewReader(head[:n]), r)); err != nil {
		spooled.Close()
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if bare {
		return &Archive{Meta: Meta{Format: Format}, Parts: map[string]*io.SectionReader{PartStore: spooled.Reader()}, spool: spooled}, nil
	}
	return Open(spooled)
}

// Open reads the parts in a spool. It closes the spool where it fails.
func Open(spooled *Spool) (*Archive, error) {
	a := &Archive{Parts: map[string]*io.SectionReader{}, spool: spooled}
	if err := a.open(); err != nil {
		spooled.Close()
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return a, nil
}

func (a *Archive) open() error {
	whole := a.spool.Reader()
	stream := tar.NewReader(whole)
	for {
		header, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(ErrNone, err)
		}
		at, err := whole.Seek(0, io.SeekCurrent) // the tar reader has read the header and nothing more
		if err != nil {
			return err
		}
		if at+header.Size > whole.Size() {
			return fmt.Errorf("%w: it was cut off in %q", ErrNone, foreign.Clip(header.Name, 60))
		}
		a.Parts[header.Name] = io.NewSectionReader(whole, at, header.Size)
	}
	return a.check()
}

// mostRequests leaves room to count on: ids of requests have twelve digits.
const mostRequests = 1e12 - 1

// check demands every part that meta.json names, with its checksum.
func (a *Archive) check() error {
	meta := a.Parts[PartMeta]
	if meta == nil || a.Parts[PartStore] == nil {
		return ErrNone
	}
	if err := json.NewDecoder(meta).Decode(&a.Meta); err != nil {
		return errors.Join(ErrNone, err)
	}
	if a.Meta.Format != Format {
		return fmt.Errorf("the snapshot has format %d, this program reads %d", a.Meta.Format, Format)
	}
	written := a.Parts[PartSums]
	if written == nil {
		return fmt.Errorf("%w: %s is missing, so it was cut off", ErrNone, PartSums)
	}
	var sums map[string]string
	if err := json.NewDecoder(written).Decode(&sums); err != nil {
		return errors.Join(ErrNone, err)
	}
	delete(a.Parts, PartSums)
	for name := range a.Parts {
		sum := sha256.New()
		if _, err := io.Copy(sum, a.Part(name)); err != nil {
			return err
		}
		if sums[name] != hex.EncodeToString(sum.Sum(nil)) {
			return fmt.Errorf("%w: the checksum of %s is wrong, so it was changed or damaged since it was made", ErrNone, foreign.Clip(name, 60))
		}
	}
	if a.Meta.Requests < 0 || a.Meta.Requests > mostRequests {
		return fmt.Errorf("%w: it cannot have seen %d requests", ErrNone, a.Meta.Requests)
	}
	for pattern, list := range map[string][]Part{PartDestination: a.Meta.Destinations, PartWarehouse: a.Meta.Warehouses, PartLedger: a.Meta.Ledgers} {
		for _, part := range list {
			if name := fmt.Sprintf(pattern, part.ID); a.Parts[name] == nil {
				return fmt.Errorf("%w: %s is missing", ErrNone, name)
			}
		}
	}
	return nil
}

// Part reads a part from its beginning.
func (a *Archive) Part(name string) io.Reader {
	p := a.Parts[name]
	return io.NewSectionReader(p, 0, p.Size())
}
