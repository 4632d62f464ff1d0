package connector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
)

// Raw is the value of a credential as it was sent.
type Raw = json.RawMessage

// Has reports whether a credential is given: null is the same as left out.
func Has(raw Raw) bool { return !rawjson.IsNull(raw) }

// filled reports whether a credential is given and is not the empty text.
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

// Lacking names problems beyond single fields: sets of which one must be
// complete, fields that others require, and the content of a key file. The
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

// incomplete reports what is missing in the most complete set.
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

// Coerce reads credentials as their fields mean them, for a service that types
// nothing: "" is the same as left out for optional fields, "5439" is a number
// where one is meant, and an object is its text or the other way round.
// Unreadable values stay, for the check to refuse.
func Coerce(fields []api.ConfigField, given map[string]Raw) map[string]Raw {
	read := maps.Clone(given)
	for i := range fields {
		f := &fields[i]
		raw := bytes.TrimSpace(given[f.ID])
		switch {
		case !Has(raw), !json.Valid(given[f.ID]):
		case string(raw) == `""` && !slices.Contains(f.Rules.Words, Required):
			delete(read, f.ID)
		default:
			read[f.ID] = coerced(f.Type, raw)
		}
	}
	return read
}

// coerced is one value as a type means it.
func coerced(typ string, raw Raw) Raw {
	var text string
	isText := json.Unmarshal(raw, &text) == nil
	inside := strings.TrimSpace(text)
	switch {
	case typ == String && !isText:
		return asText(raw)
	case typ == Boolean:
		if !isText {
			inside = string(raw) // 1 and 0
		}
		if value, err := strconv.ParseBool(inside); err == nil {
			return Raw(strconv.FormatBool(value))
		}
	case typ == Integer && isText:
		if n, err := strconv.ParseInt(inside, 10, 64); err == nil {
			return Raw(strconv.FormatInt(n, 10))
		}
	case typ == Object && isText && strings.HasPrefix(inside, "{"),
		typ == Array && isText && strings.HasPrefix(inside, "["):
		if json.Valid([]byte(inside)) {
			return Raw(inside)
		}
	}
	return raw
}

// asText is a number, a boolean, an object or a list as the text that it was
// before a client read it as JSON.
func asText(raw Raw) Raw {
	var short bytes.Buffer
	if json.Compact(&short, raw) != nil {
		return raw
	}
	text, err := json.Marshal(short.String())
	if err != nil {
		return raw
	}
	return text
}

// entry is one type of a catalogue.
type entry[E any] interface {
	*E
	Check() Problems
}

// Read decodes one type strictly and validates it.
func Read[E any, P entry[E]](file string, src []byte) (P, error) {
	e := P(new(E))
	if err := yamldoc.Decode(file, src, e); err != nil {
		return nil, err
	}
	failures := lists.Of(e.Check(), func(problem api.Problem) error { return fmt.Errorf("%s: %s: %s", file, problem.Field, problem.Message) })
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	return e, nil
}

// MustRead reads all files of an embedded catalogue that match a pattern, in the order
// of their names. Tests rule out that one is damaged.
func MustRead[E any, P entry[E]](files fs.FS, pattern string) (entries []P) {
	names, err := fs.Glob(files, pattern)
	for _, name := range names {
		var src []byte
		if src, err = fs.ReadFile(files, name); err != nil {
			break
		}
		var e P
		if e, err = Read[E, P](name, src); err != nil {
			break
		}
		entries = append(entries, e)
	}
	if err != nil {
		panic(fmt.Sprintf("read embedded catalogue: %v", err))
	}
	return entries
}

// Secrets adds a secret value as written in JSON and as it reads. Of an object,
// such as the key of a service account, the members with a telling name are
// separate secrets.
func Secrets(found []string, raw Raw) []string { return appendSecrets(found, raw, true) }

func appendSecrets(found []string, raw Raw, secret bool) []string {
	var members map[string]Raw
	if json.Unmarshal(raw, &members) == nil {
		if secret {
			found = append(found, string(raw))
		}
		for name, value := range members {
			found = appendSecrets(found, value, telling(name))
		}
		return found
	}
	var v string
	if !secret || json.Unmarshal(raw, &v) != nil || v == "" {
		return found
	}
	found = append(found, v)
	if escaped := strings.Trim(string(raw), " \t\r\n"); len(escaped) > 2 && escaped[1:len(escaped)-1] != v {
		found = append(found, escaped[1:len(escaped)-1])
	}
	if json.Valid([]byte(v)) && strings.HasPrefix(strings.TrimSpace(v), "{") {
		found = appendSecrets(found, Raw(v), false)
	}
	return found
}

// telling reports whether a member of a key file is a secret by its name.
func telling(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"key", "secret", "token", "password"}, func(word string) bool { return strings.Contains(name, word) })
}
