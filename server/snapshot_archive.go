package server

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/destkit/destkit/internal/foreign"
)

// spool is a stream on its way: a file in the data directory, or memory where
// nothing is on disk.
type spool struct {
	file   *os.File
	memory bytes.Buffer
	size   int64
}

// newSpool takes the data directory, which has room for the world already; the
// folder for temporary files may have none.
func (s *Server) newSpool() (*spool, error) {
	if s.config.Dir == "" {
		return &spool{}, nil
	}
	if err := os.MkdirAll(s.config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	file, err := os.CreateTemp(s.config.Dir, "snapshot-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return &spool{file: file}, nil
}

// Write implements io.Writer.
func (p *spool) Write(text []byte) (n int, err error) {
	if p.file != nil {
		n, err = p.file.Write(text)
	} else {
		n, err = p.memory.Write(text)
	}
	p.size += int64(n)
	return n, err
}

// reader reads all that was written.
func (p *spool) reader() *io.SectionReader {
	if p.file != nil {
		return io.NewSectionReader(p.file, 0, p.size)
	}
	return io.NewSectionReader(bytes.NewReader(p.memory.Bytes()), 0, p.size)
}

// close removes the file.
func (p *spool) close() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

// archive is a snapshot that was read: all its parts are there.
type archive struct {
	meta  snapshotMeta
	parts map[string]*io.SectionReader
	spool *spool
}

// errNoSnapshot says that a stream is no snapshot.
var errNoSnapshot = errors.New("this is no snapshot of destkit")

// Where a tar archive says that it is one, in a header of 512 bytes.
const (
	tarMagic  = "ustar"
	tarPlace  = 257
	tarHeader = 512
)

// receive spools what may be a snapshot. Other things are refused at their first
// bytes: a wrong file can be of any size.
func (s *Server) receive(r io.Reader) (*spool, error) {
	head := make([]byte, tarHeader)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if !bytes.HasPrefix(head, []byte(sqliteFileHeading)) && !bytes.HasPrefix(head[tarPlace:], []byte(tarMagic)) {
		return nil, fmt.Errorf("read snapshot: %w", errNoSnapshot)
	}
	spooled, err := s.newSpool()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(spooled, io.MultiReader(bytes.NewReader(head[:n]), r)); err != nil {
		spooled.close()
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return spooled, nil
}

// readArchive reads a snapshot to its end and checks that it is whole. A bare
// copy of the store, which is what a backup is, counts as one without parts.
func (s *Server) readArchive(r io.Reader) (*archive, error) {
	spooled, err := s.receive(r)
	if err != nil {
		return nil, err
	}
	a, err := openArchive(spooled)
	if err != nil {
		spooled.close()
	}
	return a, err
}

// openArchive reads what is in a spool, which stays the caller's.
func openArchive(spooled *spool) (*archive, error) {
	a := &archive{parts: map[string]*io.SectionReader{}, spool: spooled}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return a, nil
}

func (a *archive) open() error {
	whole := a.spool.reader()
	// A backup is the bare file of the store.
	head := make([]byte, len(sqliteFileHeading))
	if _, err := whole.ReadAt(head, 0); err == nil && string(head) == sqliteFileHeading {
		a.parts[partStore] = whole
		a.meta.Format = snapshotFormat
		return nil
	}
	stream := tar.NewReader(whole)
	for {
		header, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(errNoSnapshot, err)
		}
		at, err := whole.Seek(0, io.SeekCurrent) // the tar reader has read the header and nothing more
		if err != nil {
			return err
		}
		if at+header.Size > whole.Size() {
			return fmt.Errorf("%w: it was cut off in %q", errNoSnapshot, foreign.Clip(header.Name, 60))
		}
		a.parts[header.Name] = io.NewSectionReader(whole, at, header.Size)
	}
	return a.check()
}

// maxRequests leaves room to count on: ids of requests have twelve digits.
const maxRequests = 1e12 - 1

// check demands every part that meta.json names.
func (a *archive) check() error {
	meta := a.parts[partMeta]
	if meta == nil || a.parts[partStore] == nil {
		return errNoSnapshot
	}
	if err := json.NewDecoder(meta).Decode(&a.meta); err != nil {
		return errors.Join(errNoSnapshot, err)
	}
	switch a.meta.Format {
	case snapshotFormat:
		if err := a.intact(); err != nil {
			return err
		}
	case unsummedFormat:
	default:
		return fmt.Errorf("the snapshot has format %d, this program reads %d", a.meta.Format, snapshotFormat)
	}
	if a.meta.Requests < 0 || a.meta.Requests > maxRequests {
		return fmt.Errorf("%w: it cannot have seen %d requests", errNoSnapshot, a.meta.Requests)
	}
	for pattern, list := range map[string][]snapshotPart{partDestination: a.meta.Destinations, partWarehouse: a.meta.Warehouses, partLedger: a.meta.Ledgers} {
		for _, part := range list {
			if name := fmt.Sprintf(pattern, part.ID); a.parts[name] == nil {
				return fmt.Errorf("%w: %s is missing", errNoSnapshot, name)
			}
		}
	}
	return nil
}

// intact compares every part with its checksum.
func (a *archive) intact() error {
	written := a.parts[partSums]
	if written == nil {
		return fmt.Errorf("%w: %s is missing, so it was cut off", errNoSnapshot, partSums)
	}
	var sums map[string]string
	if err := json.NewDecoder(written).Decode(&sums); err != nil {
		return errors.Join(errNoSnapshot, err)
	}
	for name := range a.parts {
		if name == partSums {
			continue
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, a.part(name)); err != nil {
			return err
		}
		if sums[name] != hex.EncodeToString(sum.Sum(nil)) {
			return fmt.Errorf("%w: the checksum of %s is wrong, so it was changed or damaged since it was made", errNoSnapshot, foreign.Clip(name, 60))
		}
	}
	return nil
}

// part reads a part from its beginning.
func (a *archive) part(name string) io.Reader {
	p := a.parts[name]
	return io.NewSectionReader(p, 0, p.Size())
}
