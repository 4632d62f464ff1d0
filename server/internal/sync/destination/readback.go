package destination

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/destkit/destkit/internal/rawjson"
)

// HookClient gives the client for a read-back hook: its name is resolved, its
// certificate verified and its address dialled as those of destinations, and plain
// http is for loopback unless Options.AllowPlainHTTP. problem is why the address
// must not be called. The calls are not marked as the service's own: who may use the
// control API has chosen the address, which mostly is a control endpoint.
func (g *Gate) HookClient(address string) (client *http.Client, problem string) {
	if _, problem = checkURL(address, g.options.AllowPlainHTTP); problem != "" {
		return nil, problem
	}
	p, _ := g.pool(postPool)
	return &http.Client{Transport: p, CheckRedirect: noRedirect}, ""
}

// Lister is a Sender whose destination the service keeps itself: emulated types
// and local_files. Reading makes no call of the protocol.
type Lister interface {
	// EachStored hands all records of an object to fn, in any order. Cells of a CSV
	// file are strings. Errors of fn come back as they are.
	EachStored(object string, fn func(fields map[string]json.RawMessage) error) error
	// Texts reports whether everything is stored as text, without types.
	Texts() bool
}

var (
	_ Lister = (*emulatedSender)(nil)
	_ Lister = (*filesSender)(nil)
)

// EachStored implements Lister: without what the application keeps for itself.
func (s *emulatedSender) EachStored(object string, fn func(fields map[string]json.RawMessage) error) error {
	var failed error
	var own map[string]string
	if o := s.emulated.entry.Object(object); o != nil {
		own = o.OwnFields()
	}
	err := s.eachRecord(object, func(_ int64, fields map[string]json.RawMessage) {
		for name := range own {
			delete(fields, name)
		}
		if failed == nil {
			failed = fn(fields)
		}
	})
	return errors.Join(err, failed)
}

// Texts implements Lister.
func (s *emulatedSender) Texts() bool { return false }

// Texts implements Lister: a cell of a CSV file has no type.
func (s *filesSender) Texts() bool { return s.format == FormatCSV }

// EachStored implements Lister: the rows of the file. A last line without its
// end was being written when a process was killed, and is no row: the next
// writer cuts it.
func (s *filesSender) EachStored(object string, fn func(fields map[string]json.RawMessage) error) error {
	root, err := s.folder()
	if err != nil {
		return err
	}
	defer root.Close()
	f, err := root.Open(FileName(object, s.format))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open file: %w", err)
	}
	defer f.Close()
	if s.format == FormatCSV {
		err = eachLine(f, fn)
	} else {
		err = eachObject(f, fn)
	}
	if err != nil {
		return fmt.Errorf("read file %s: %w", FileName(object, s.format), err)
	}
	return nil
}

// eachObject reads JSON lines.
func eachObject(f io.Reader, fn func(map[string]json.RawMessage) error) error {
	in := bufio.NewReaderSize(f, 256<<10)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return fmt.Errorf("line %d is no JSON object", n)
		}
		if err := fn(fields); err != nil {
			return err
		}
	}
}

// eachLine reads CSV with a header line.
func eachLine(f io.Reader, fn func(map[string]json.RawMessage) error) error {
	in := csv.NewReader(bufio.NewReaderSize(f, 256<<10))
	in.FieldsPerRecord = -1
	names, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	for err == nil {
		var cells []string
		if cells, err = in.Read(); err != nil {
			break
		}
		fields := make(map[string]json.RawMessage, len(cells))
		for i, cell := range cells {
			if i < len(names) {
				fields[names[i]] = rawjson.AppendString(nil, cell)
			}
		}
		err = fn(fields)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
