package connector

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/destkit/destkit/internal/yamldoc"
)

// entry is one type of a catalogue.
type entry[E any] interface {
	*E
	Check() Problems
}

// Read decodes one type strictly and checks what it says.
func Read[E any, P entry[E]](file string, src []byte) (P, error) {
	e := P(new(E))
	if err := yamldoc.Decode(file, src, e); err != nil {
		return nil, err
	}
	var failures []error
	for _, problem := range e.Check() {
		failures = append(failures, fmt.Errorf("%s: %s: %s", file, problem.Field, problem.Message))
	}
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return e, nil
}

// MustRead reads all files of an embedded catalogue that match a pattern, in the order
// of their names. Tests rule out that one is damaged.
func MustRead[E any, P entry[E]](files fs.FS, pattern string) (entries []P) {
	names, err := fs.Glob(files, pattern)
	for _, name := range names {
		var src []byte
		if src, err = fs.ReadFile(files, name); err != nil {
			break
		}
		var e P
		if e, err = Read[E, P](name, src); err != nil {
			break
		}
		entries = append(entries, e)
	}
	if err != nil {
		panic(fmt.Sprintf("read embedded catalogue: %v", err))
	}
	return entries
}
