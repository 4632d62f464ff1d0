package sources

import (
	"errors"

	"github.com/destkit/destkit/internal/source"
)

// sourceTypes are the types that there are at this moment: those of the program,
// and those that were declared.
func (k *Sources) Types() *source.Catalogue { return k.catalogue.Load() }

// sourceType describes one type; the zero value stands for an unknown one.
func (k *Sources) Described(name string) source.Description {
	described, _ := k.Types().Type(name)
	return described
}

// sourceTypeNames are the words of "type" in a connection to a source.
func (k *Sources) TypeNames() []string {
	var names []string
	for _, t := range k.Types().Types() {
		names = append(names, t.ServiceName)
	}
	return names
}

// TypeName is the name of a type by which it is kept; others stay as they are.
func (k *Sources) TypeName(typ string) string { return k.Types().Name(typ) }

// homeless says why a source of a type cannot be opened here.
func (k *Sources) Refused(typ string) error {
	if k.noFiles && inFiles(k.Described(typ)) {
		return ErrNoFolder
	}
	return nil
}

// ErrNoFolder refuses what lies in files where several processes may be at work
// that share no folder: each would find other files, or none.
var ErrNoFolder = errors.New("it lies in files, and the processes of this service share no folder: start all of them with the same data directory (--data), or use a type that lies elsewhere")

// inFiles reports whether a source is read from files of this machine.
func inFiles(described source.Description) bool {
	return described.File || described.Emulated || described.ServiceName == "sqlite"
}
