package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Writer writes a snapshot part by part.
type Writer struct {
	stream *tar.Writer
	dir    string // of the spools of parts
	at     time.Time
	sums   map[string]string // of the parts, in hex
}

// NewWriter writes meta.json first: it lists the other parts for the reader.
func NewWriter(out io.Writer, meta Meta, dir string) (*Writer, error) {
	w := &Writer{stream: tar.NewWriter(out), dir: dir, at: meta.TakenAt, sums: map[string]string{}}
	return w, w.Part(PartMeta, func(out io.Writer) error {
		text := json.NewEncoder(out)
		text.SetIndent("", "  ")
		return text.Encode(meta)
	})
}

// Part writes a part. It is spooled first: tar wants its length before its content.
func (w *Writer) Part(name string, write func(io.Writer) error) error {
	piece, err := NewSpool(w.dir)
	if err != nil {
		return err
	}
	defer piece.Close()
	if err := write(piece); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	head := &tar.Header{Name: name, Mode: 0o600, Size: piece.Size(), ModTime: w.at, Format: tar.FormatPAX}
	if err := w.stream.WriteHeader(head); err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(w.stream, sum), piece.Reader())
	w.sums[name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// Close writes the checksums, and the end of the stream.
func (w *Writer) Close() error {
	if err := w.Part(PartSums, func(out io.Writer) error { return json.NewEncoder(out).Encode(w.sums) }); err != nil {
		return err
	}
	return w.stream.Close()
}

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
