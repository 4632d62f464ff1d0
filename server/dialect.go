package server

import (
	"fmt"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/dialect"
)

// Dialect says whom the service resembles where its two authorities differ.
type Dialect string

// DialectSpec follows the specification to the letter, DialectLive what real
// clients were seen to depend on.
const (
	DialectSpec Dialect = "spec"
	DialectLive Dialect = "live"
)

// Differences lists where the dialects differ, in the order of the OpenAPI
// document.
func Differences() []openapi.Difference { return openapi.Differences() }

// switched returns the switches of a dialect.
func (d Dialect) switched() (dialect.Switches, error) {
	switch d {
	case "", DialectSpec:
		return dialect.Switches{}, nil
	case DialectLive:
		return dialect.Live(), nil
	}
	return dialect.Switches{}, fmt.Errorf("choose dialect: %q is neither %s nor %s", string(d), DialectSpec, DialectLive)
}
