package conformance

import "github.com/destkit/destkit/conformance/internal/wire"

// Sight is an exchange between two others, as a proxy or a recording saw it.
type (
	Sight  = wire.Sight
	Asked  = wire.Asked
	Timing = wire.Timing
)

// HeaderLine is one header line of a Sight.
type HeaderLine = wire.Header

// EndedBy is the end of a recorded exchange: kind is that of an Exchange, text what is
// known of it.
func EndedBy(kind, text string) error { return &wire.Error{Kind: wire.Kind(kind), Op: text} }
