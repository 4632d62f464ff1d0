// Package discover learns what an endpoint offers and refuses before it is judged: its
// objects, the values and plans that it takes, how late writes arrive, and whether the
// read-back hook can be believed. It judges nothing.
package discover

import "github.com/destkit/destkit/conformance/internal/write"

// Discovery is a run with what was learned of its endpoint.
type Discovery struct {
	write.Session
	// HookFault: the read-back hook failed its own test and is not believed.
	HookFault error
	Unwritten *Unwritten // why a run that may write does not; nil when it does
	Untrusted bool       // the certificate does not verify
}
