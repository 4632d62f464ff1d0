package server

import (
	"context"

	"github.com/destkit/destkit/server/internal/seed"
)

// Seeded is what a seed made, by the names in it. Tokens are shown once.
type Seeded = seed.Seeded

// The parts of Seeded.
type (
	// SeededOrganization is one organization of a seed.
	SeededOrganization = seed.SeededOrganization
	// SeededUser is a user by the e-mail address.
	SeededUser = seed.SeededUser
	// SeededWorkspace has the ids of everything in a workspace by name.
	SeededWorkspace = seed.SeededWorkspace
	// SeededWebhook is a webhook with the secret that is shown once.
	SeededWebhook = seed.SeededWebhook
)

// CheckSeed reports whether a seed can be read at all, before there is a service to
// put it into. What the API makes of its entries only Seed finds out.
func CheckSeed(file string, src []byte) error { return seed.Check(file, src) }

// Seed makes everything in a seed or, on an error, nothing, as who runs the service does
// at a start: its organizations are none of others (see Config.AllowFiles). file is used in
// messages only. An error names the place: file, line and column where the document cannot
// be read, the entry where the API refuses it.
func (s *Server) Seed(ctx context.Context, file string, src []byte) (*Seeded, error) {
	return s.seeds.Seed(ctx, file, src)
}

// SeedOnce is Seed for a store that had none by SeedOnce before; otherwise nothing
// happens, and the result is nil. Of several processes one seeds, and a seed that
// fails may be tried again.
func (s *Server) SeedOnce(ctx context.Context, file string, src []byte) (*Seeded, error) {
	return s.seeds.SeedOnce(ctx, file, src)
}
