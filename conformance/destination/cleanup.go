package destination

import (
	"context"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/line"
)

// Clean resumes the clean-up of an earlier run from its journal: it deletes only
// journalled keys that carry the run of the journal, and says exactly what is left
// behind.
func Clean(ctx context.Context, target Target, opts conformance.Options) (*conformance.Residue, error) {
	path := opts.Journal
	if path == "" {
		return nil, line.Usage("the journal is missing: destkit clean --journal FILE URL")
	}
	opts.Journal = ""
	s, err := newSession(target, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	res, err := s.CleanJournal(ctx, path)
	if res != nil {
		s.Redactor.Value(res)
	}
	return res, s.suite().HideError(err)
}
