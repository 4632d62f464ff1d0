package archive

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Spool is a stream on its way: a file in the data directory, or memory where
// nothing is on disk. Close it.
type Spool struct {
	file   *os.File
	memory bytes.Buffer
	size   int64
}

// NewSpool takes the data directory, which has room for the world already; the
// folder for temporary files may have none. "" is memory.
func NewSpool(dir string) (*Spool, error) {
	if dir == "" {
		return &Spool{}, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	file, err := os.CreateTemp(dir, "snapshot-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("make spool: %w", err)
	}
	return &Spool{file: file}, nil
}

// Write implements io.Writer.
func (p *Spool) Write(text []byte) (n int, err error) {
	if p.file != nil {
		n, err = p.file.Write(text)
	} else {
		n, err = p.memory.Write(text)
	}
	p.size += int64(n)
	return n, err
}

// Reader reads all that was written.
func (p *Spool) Reader() *io.SectionReader {
	if p.file != nil {
		return io.NewSectionReader(p.file, 0, p.size)
	}
	return io.NewSectionReader(bytes.NewReader(p.memory.Bytes()), 0, p.size)
}

// Close removes the file.
func (p *Spool) Close() {
	if p.file != nil {
		_ = p.file.Close()
		_ = os.Remove(p.file.Name())
	}
}

// Size is how many bytes were written.
func (p *Spool) Size() int64 { return p.size }
