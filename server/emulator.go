package server

import (
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// What keeps the records of emulated destination types (Config.Emulate): the
// service describes the objects of a type and gets a store that answers the custom
// destination protocol.
type (
	Emulator       = destination.Emulator
	Emulated       = destination.Emulated
	EmulatedObject = destination.EmulatedObject
)

// ErrUnavailable says that a database does not answer at this moment. An Emulator whose
// store is away returns an error that wraps it, and the call is answered with 503.
var ErrUnavailable = store.ErrUnavailable
