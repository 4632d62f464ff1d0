package archive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Writer writes a snapshot part by part.
type Writer struct {
	stream *tar.Writer
	dir    string // of the spools of parts
	at     time.Time
	sums   map[string]string // of the parts, in hex
}

// NewWriter writes meta.json first: a reader learns what is to come.
func NewWriter(out io.Writer, meta Meta, dir string) (*Writer, error) {
	w := &Writer{stream: tar.NewWriter(out), dir: dir, at: meta.TakenAt, sums: map[string]string{}}
	text, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return nil, err
	}
	return w, w.Send(PartMeta, bytes.NewReader(text), int64(len(text)))
}

// Send writes a part of so many bytes.
func (w *Writer) Send(name string, from io.Reader, size int64) error {
	head := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.at, Format: tar.FormatPAX}
	if err := w.stream.WriteHeader(head); err != nil {
		return err
	}
	sum := sha256.New()
	_, err := io.Copy(io.MultiWriter(w.stream, sum), from)
	w.sums[name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// Part writes a part whose length is not known yet: it is spooled first, as tar wants its
// length beforehand.
func (w *Writer) Part(name string, write func(io.Writer) error) error {
	piece, err := NewSpool(w.dir)
	if err != nil {
		return err
	}
	defer piece.Close()
	if err := write(piece); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.Send(name, piece.Reader(), piece.size)
}

// Close writes the checksums, and the end of the stream.
func (w *Writer) Close() error {
	if err := w.Part(PartSums, func(out io.Writer) error { return json.NewEncoder(out).Encode(w.sums) }); err != nil {
		return err
	}
	return w.stream.Close()
}
