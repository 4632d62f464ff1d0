package server

import "reflect"

// Documents are the types of the YAML documents that a service reads, for schemas:
// "seed", and "connector", a declared type of destinations or sources.
func Documents() map[string]reflect.Type {
	return map[string]reflect.Type{"seed": reflect.TypeFor[seedDocument](), "connector": reflect.TypeFor[declaration]()}
}
