package service

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/journal"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// kinds are what a run makes, in the order in which it can be deleted; named is
// the field of the name.
var kinds = []struct {
	path, named string
	as          identity
}{
	{"syncs", "label", asWorkspace}, {"datasets", "name", asWorkspace}, {"destinations", "name", asWorkspace},
	{"sources", "name", asWorkspace}, {"webhooks", "name", asWorkspace},
	{"invitations", "email", asOrganization}, {"workspaces", "name", asOrganization},
}

// Clean deletes what a run left behind that was killed: things whose names begin
// as its journal says, and nothing else. Options.Journal names the journal.
func Clean(ctx context.Context, target Target, opts Options) (*conformance.Residue, error) {
	r, err := newRun(target, &opts)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.journal, err = journal.Open(opts.Journal); err != nil {
		return nil, usage(err.Error())
	}
	if r.journal.Header().Suite != conformance.SuiteService {
		return nil, usage("the journal is that of a judged destination: give the URL of its endpoint")
	}
	pending := r.journal.Pending()
	var prefixes []string
	for _, k := range pending {
		var prefix string
		if err := json.Unmarshal(k.Identifier, &prefix); err != nil || !strings.HasPrefix(prefix, "zz-conf-"+r.journal.Header().Run+"-") {
			return nil, usage(fmt.Sprintf("the journal names %s, which no run of this program has made", k.Identifier))
		}
		prefixes = append(prefixes, prefix)
	}
	for _, kind := range kinds {
		if r.tokenFor(request{as: kind.as}) == "" {
			continue
		}
		if err := r.find(ctx, kind.path, kind.named, kind.as, prefixes); err != nil {
			return nil, err
		}
	}
	residue := &conformance.Residue{Journal: opts.Journal, Refused: []conformance.Leftover{}, Unknown: []conformance.Leftover{}}
	r.cleanUp(ctx, residue)
	if len(residue.Refused) == 0 {
		return residue, r.journal.Cleaned(pending)
	}
	return residue, nil
}

// find keeps the things of a kind whose names begin with one of the prefixes.
// They are deleted in the opposite order, so the kinds that others need come last.
func (r *run) find(ctx context.Context, path, named string, as identity, prefixes []string) error {
	var found []thing
	for page := 1; ; page++ {
		a, err := r.send(ctx, "CLEAN", request{method: "GET", path: fmt.Sprintf("/%s?per_page=100&order=asc&page=%d", path, page), as: as})
		switch {
		case err != nil:
			return err
		case a.Status == 404: // the service has no such list
			return nil
		case !a.OK() || a.Status >= 300:
			return fmt.Errorf("list %s: %s", path, r.secrets.String(a.short()))
		}
		data := a.at("data")
		for i := range data.Items {
			one := data.Items[i]
			name := jsonvalue.Text(one.Get(named))
			for _, prefix := range prefixes {
				if strings.HasPrefix(name, prefix) {
					id, _ := one.Get("id").Int()
					found = append(found, thing{kind: path, id: id, name: name, as: as})
					break
				}
			}
		}
		if last, _ := a.at("pagination", "last_page").Int(); int64(page) >= last {
			break
		}
	}
	// cleanUp takes the last first, so what comes first here goes to the end.
	r.things.mu.Lock()
	defer r.things.mu.Unlock()
	r.things.made = append(found, r.things.made...)
	return nil
}
