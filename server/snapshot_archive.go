package server

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool is a stream on its way: a file in the data directory, or memory where
// nothing is on disk.
type spool struct {
	file   *os.File
	memory bytes.Buffer
	size   int64
}

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

// readArchive reads a snapshot to its end and checks that it is whole. A bare
// copy of the store, which is what a backup is, counts as one without parts.
func (s *Server) readArchive(r io.Reader) (*archive, error) {
	spooled, err := s.newSpool()
	if err != nil {
		return nil, err
	}
	a := &archive{parts: map[string]*io.SectionReader{}, spool: spooled}
	if _, err := io.Copy(spooled, r); err != nil {
		spooled.close()
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	if err := a.open(); err != nil {
		spooled.close()
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return a, nil
}

func (a *archive) open() error {
	whole := a.spool.reader()
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
			return fmt.Errorf("%w: it was cut off in %q", errNoSnapshot, clip(header.Name, 60))
		}
		a.parts[header.Name] = io.NewSectionReader(whole, at, header.Size)
	}
	return a.check()
}

// check demands every part that meta.json names.
func (a *archive) check() error {
	meta := a.parts[partMeta]
	if meta == nil || a.parts[partStore] == nil {
		return errNoSnapshot
	}
	if err := json.NewDecoder(meta).Decode(&a.meta); err != nil {
		return errors.Join(errNoSnapshot, err)
	}
	if a.meta.Format != snapshotFormat {
		return fmt.Errorf("the snapshot has format %d, this program reads %d", a.meta.Format, snapshotFormat)
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

// part reads a part from its beginning.
func (a *archive) part(name string) io.Reader {
	p := a.parts[name]
	return io.NewSectionReader(p, 0, p.Size())
}
