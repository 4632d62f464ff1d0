package server

import "fmt"

// asText is a value of a body as a string, as a careless serializer writes it.
func asText(v any) string { return fmt.Sprint(v) }
