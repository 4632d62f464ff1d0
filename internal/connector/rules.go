package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
)

// Raw is the value of a credential as it was sent.
type Raw = json.RawMessage

// Has reports whether a credential is given: null is the same as left out.
func Has(raw Raw) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && string(raw) != "null"
}

// filled tells that a credential is given and is not the empty text.
func filled(raw Raw) bool { return Has(raw) && string(bytes.TrimSpace(raw)) != `""` }

// Text is the value of a text, "" for everything else.
func Text(raw Raw) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// Canonical gives credentials under the ids by which they are kept: an alias is
// another spelling of its field. Who sends both must send the same.
func (d *Declared) Canonical(given map[string]Raw) (kept map[string]Raw, problems []api.Problem) {
	kept = map[string]Raw{}
	for id, raw := range given {
		if f := Find(d.Credentials, id); f == nil || f.AliasOf == "" {
			kept[id] = raw
		}
	}
	for _, f := range d.Credentials {
		raw, ok := given[f.ID]
		if f.AliasOf == "" || !ok {
			continue
		}
		other, both := kept[f.AliasOf]
		switch {
		case !both || !filled(other):
			kept[f.AliasOf] = raw
		case filled(raw) && !bytes.Equal(bytes.TrimSpace(raw), bytes.TrimSpace(other)):
			problems = append(problems, api.Problem{Field: f.ID, Message: "is another spelling of " + f.AliasOf + ", which has another value; send one of them"})
		}
	}
	return kept, problems
}

// Lacking names what single fields cannot say: sets of which one must be
// complete, fields that others require, and what stands in a key file. The
// credentials are canonical; Field is relative to them.
func (d *Declared) Lacking(credentials map[string]Raw) []api.Problem {
	problems := d.incomplete(credentials)
	for _, f := range d.Credentials {
		raw := credentials[f.ID]
		var set bool
		if f.RequiredIf != "" && json.Unmarshal(credentials[f.RequiredIf], &set) == nil && set && !filled(raw) {
			problems = append(problems, api.Problem{Field: f.ID, Message: "is required with " + f.RequiredIf})
		}
		if f.Format == ServiceAccount && Has(raw) {
			problems = append(problems, checkAccount(f.ID, raw)...)
		}
	}
	return problems
}

// incomplete says what is missing in the set of which most is there.
func (d *Declared) incomplete(credentials map[string]Raw) (problems []api.Problem) {
	var best, missing []string
	most := -1
	for _, set := range d.OneOf {
		lacks := slices.DeleteFunc(slices.Clone(set), func(id string) bool { return filled(credentials[id]) })
		if len(lacks) == 0 {
			return nil
		}
		if there := len(set) - len(lacks); there > most {
			best, missing, most = set, lacks, there
		}
	}
	for _, id := range missing {
		message := "is required"
		for _, f := range d.Credentials {
			if f.AliasOf == id {
				message += ", as " + id + " or " + f.ID
			}
		}
		var instead []string
		for _, set := range d.OneOf {
			if !slices.Contains(set, id) {
				instead = append(instead, together(set))
			}
		}
		if len(best) > 1 {
			message += " beside " + together(slices.DeleteFunc(slices.Clone(best), func(other string) bool { return other == id }))
		}
		if len(instead) > 0 {
			message += "; or give " + strings.Join(instead, ", or ")
		}
		problems = append(problems, api.Problem{Field: id, Message: message})
	}
	return problems
}

// together lists ids as a sentence does.
func together(ids []string) string {
	if len(ids) < 2 {
		return strings.Join(ids, "")
	}
	return strings.Join(ids[:len(ids)-1], ", ") + " and " + ids[len(ids)-1]
}

// account is the key file of a service account as far as it is checked.
type account struct {
	Type        string `json:"type"`
	ProjectID   string `json:"project_id"`
	PrivateKey  string `json:"private_key"`
	ClientEmail string `json:"client_email"`
}

// readAccount reads the key from an object or from a string that holds one.
func readAccount(raw Raw) (key account, err error) {
	var inside string
	if json.Unmarshal(raw, &inside) == nil {
		raw = Raw(inside)
	}
	if !strings.HasPrefix(strings.TrimSpace(string(raw)), "{") || json.Unmarshal(raw, &key) != nil {
		return key, errors.New("read key: not a key file")
	}
	return key, nil
}

// checkAccount reports all missing members together.
func checkAccount(id string, raw Raw) (problems []api.Problem) {
	key, err := readAccount(raw)
	if err != nil {
		return []api.Problem{{Field: id, Message: "must be the key file of a service account, as an object or as its text"}}
	}
	if key.Type != ServiceAccount {
		problems = append(problems, api.Problem{Field: id + ".type", Message: "must be " + ServiceAccount})
	}
	for _, member := range []struct{ name, value string }{
		{"project_id", key.ProjectID}, {"private_key", key.PrivateKey}, {"client_email", key.ClientEmail},
	} {
		if member.value == "" {
			problems = append(problems, api.Problem{Field: id + "." + member.name, Message: "is required"})
		}
	}
	return problems
}
