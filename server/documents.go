package server

import (
	"reflect"

	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/seed"
)

// Documents are the types of the YAML documents that a service reads, for schemas:
// "seed", and "connector", a declared type of destinations or sources.
func Documents() map[string]reflect.Type {
	return map[string]reflect.Type{"seed": reflect.TypeFor[seed.Document](), "connector": reflect.TypeFor[connectors.Declaration]()}
}
