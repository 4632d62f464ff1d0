package destination

import (
	"context"

	"github.com/destkit/destkit/conformance"
)

// JudgeAltered runs one check on a target with an altered scenario, or with one
// Then line counting as its opposite. For tests of the catalogue itself.
func JudgeAltered(ctx context.Context, target Target, opts conformance.Options, id string, alter func(source string) string, negated string) (conformance.Status, error) {
	s, err := newSession(target, opts)
	if err != nil {
		return "", err
	}
	defer s.Close()
	if err := s.OpenJournal(); err != nil {
		return "", err
	}
	r := &conformance.Report{}
	s.Preflight(ctx, r)
	s.TryValues(ctx, s.Cat.Checks)
	suite := s.suite()
	suite.Permitted = nil
	status := conformance.NotApplicable
	for _, name := range suite.Objects() {
		suite.Objects = func() []string { return []string{name} }
		if got := suite.Try(ctx, id, alter, negated).Status; status == conformance.NotApplicable || got == conformance.Fail {
			status = got
		}
	}
	s.CleanUp(ctx, r, false)
	return status, nil
}
