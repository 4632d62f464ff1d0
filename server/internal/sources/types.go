package sources

import (
	"github.com/destkit/destkit/internal/source"
)

// sourceTypes are the types that there are at this moment: those of the program,
// and those that were declared.
func (k *Sources) Types() *source.Catalogue { return k.catalogue.Load() }

// sourceType describes one type; the zero value is an unknown one.
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
