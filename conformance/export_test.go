package conformance

import "context"

// JudgeAltered runs one check on a target with an altered scenario, or with one
// Then line counting as its opposite. For tests of the catalogue itself.
func JudgeAltered(ctx context.Context, target Target, opts Options, id string, alter func(source string) string, negated string) (Status, error) {
	s, err := newSession(target, opts)
	if err != nil {
		return "", err
	}
	defer s.close()
	if err := s.load(); err != nil {
		return "", err
	}
	if err := s.openJournal(); err != nil {
		return "", err
	}
	r := &Report{}
	s.preflight(ctx, r)
	c, _ := s.cat.Check(id)
	altered := *c
	altered.source = []byte(alter(string(c.source)))
	objects := []*object{nil}
	if c.EachObject {
		objects = nil
		for _, name := range opts.Objects {
			objects = append(objects, s.catalog.object(name))
		}
	}
	status := NotApplicable
	for _, o := range objects {
		sc := s.newScenario(ctx, &altered, o)
		out := runScenario(&altered, definitions(), sc, negated)
		if err := sc.endHooks(); err != nil {
			return "", err
		}
		if len(sc.findings) > 0 && negated == "" {
			out = &outcome{status: Fail}
		}
		if status == NotApplicable || out.status == Fail {
			status = out.status
		}
	}
	s.cleanUp(ctx, r, false)
	return status, nil
}
