// Package connectors owns types of destinations and sources that people declare: the
// rules of a declaration, and its storage.
package connectors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Declaration is a type of one's own: of destinations, of sources, or of both
// under one name. It is written as the rows of the catalogues are.
type Declaration struct {
	Destination *catalogue.Entry `yaml:"destination"`
	Source      *source.Entry    `yaml:"source"`
}

// Name is the service_name of both parts.
func (d *Declaration) Name() string {
	if d.Destination != nil {
		return d.Destination.ServiceName
	}
	return d.Source.ServiceName
}

// Check names all that is wrong, each with its place.
func (d *Declaration) Check() (problems []api.Problem) {
	under := func(part string, found []api.Problem) {
		for _, p := range found {
			problems = append(problems, api.Problem{Field: part + "." + p.Field, Message: p.Message})
		}
	}
	if d.Destination == nil && d.Source == nil {
		return []api.Problem{{Field: "destination", Message: "is required, or source: a declaration has one or both"}}
	}
	if d.Destination != nil {
		under("destination", d.Destination.Check())
		if destination.Known(d.Destination.ServiceName) {
			under("destination", nameTaken)
		}
	}
	if d.Source != nil {
		under("source", d.Source.Check())
		for i, alias := range d.Source.Aliases {
			under("source", []api.Problem{{Field: fmt.Sprintf("aliases[%d]", i), Message: fmt.Sprintf("%q: only the types of the service have other spellings", foreign.Clip(alias, 60))}})
		}
		if _, known := source.Type(d.Source.ServiceName); known {
			under("source", nameTaken)
		}
	}
	if d.Destination != nil && d.Source != nil && d.Destination.ServiceName != d.Source.ServiceName {
		under("source", []api.Problem{{Field: "service_name", Message: "must be that of the destination; declare another name apart"}})
	}
	return problems
}

// nameTaken is wrong with a name that the service has already.
var nameTaken = []api.Problem{{Field: "service_name", Message: "is a type of the service's own; choose another name"}}

// connectorSettings begins the keys under which declarations are kept in the
// store: so they are in copies of it, too.
const connectorSettings = "connector "

// Connectors are the declared types.
type Connectors struct {
	shared  *call.Shared
	gate    *destination.Gate
	sources *sources.Sources

	turn  sync.Mutex
	known map[string]knownConnector // by name
}

// New has none until Load.
func New(shared *call.Shared, gate *destination.Gate, sources *sources.Sources) *Connectors {
	return &Connectors{shared: shared, gate: gate, sources: sources}
}

// knownConnector is one of them with the text that it comes from.
type knownConnector struct {
	text string
	*Declaration
}

// Load makes the types those that the store has now.
func (k *Connectors) Load(ctx context.Context) error {
	// Read within the turn: an older reading must not come after a newer one.
	k.turn.Lock()
	defer k.turn.Unlock()
	texts, err := store.Read(ctx, k.shared.Store, func(tx *store.Tx) (map[string]string, error) { return tx.Settings(connectorSettings) })
	if err != nil {
		return err
	}
	known := map[string]knownConnector{}
	var destinations []*catalogue.Entry
	var sources []*source.Entry
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		name, text := strings.TrimPrefix(key, connectorSettings), texts[key]
		// Unchanged entries stay in place: others hold them.
		if known[name] = k.known[name]; known[name].text != text {
			d, err := readDeclaration(name, []byte(text))
			if err != nil {
				return fmt.Errorf("read declared type %s: %w", name, err)
			}
			known[name] = knownConnector{text, d}
		}
		if d := known[name].Destination; d != nil {
			destinations = append(destinations, d)
		}
		if d := known[name].Source; d != nil {
			sources = append(sources, d)
		}
	}
	k.known = known
	k.gate.Declare(destinations)
	k.sources.Declare(source.BuiltIn().With(sources...))
	return nil
}

// readDeclaration reads YAML, of which JSON is a part, strictly.
func readDeclaration(file string, text []byte) (*Declaration, error) {
	d := &Declaration{}
	if err := yamldoc.Decode(file, text, d); err != nil {
		return nil, Unreadable(err)
	}
	if problems := d.Check(); len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return d, nil
}

// Declare keeps a declaration and puts it into force. before is the
// text that it replaces, "" where there was none. Types that are in use stay as
// they are.
func (k *Connectors) Declare(ctx context.Context, d *Declaration) (before string, changed bool, err error) {
	text, err := yamldoc.Encode(d)
	if err != nil {
		return "", false, err
	}
	key := connectorSettings + d.Name()
	err = k.shared.Store.Update(ctx, func(tx *store.Tx) (err error) {
		before, err = tx.Setting(key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if changed = before != string(text); !changed {
			return nil
		}
		if before != "" {
			if err := unused(tx, d.Name()); err != nil {
				return err
			}
		}
		return tx.SetSetting(key, string(text))
	})
	if err == nil && changed {
		err = k.Load(context.WithoutCancel(ctx)) // it is in the store
	}
	return before, changed, err
}

// Undeclare restores the previous declaration, which is "" for nothing.
func (k *Connectors) Undeclare(ctx context.Context, name, before string) error {
	err := k.shared.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Setting(connectorSettings + name); err != nil {
			return err
		}
		if err := unused(tx, name); err != nil {
			return err
		}
		if before != "" {
			return tx.SetSetting(connectorSettings+name, before)
		}
		return tx.DeleteSetting(connectorSettings + name)
	})
	if err != nil {
		return err
	}
	return k.Load(context.WithoutCancel(ctx)) // it is in the store
}

// usedBy counts the connections of a type.
func usedBy(tx *store.Tx, name string) (destinations, sources int, err error) {
	all, err := tx.Everything()
	is := func(one store.Typed) bool { return one.Type == name }
	return len(lists.Where(all.Destinations, is)), len(lists.Where(all.Sources, is)), err
}

// unused refuses to touch a type that connections have.
func unused(tx *store.Tx, name string) error {
	destinations, sources, err := usedBy(tx, name)
	if err == nil && destinations+sources > 0 {
		err = problem.Refuse(http.StatusConflict, "type %s is used by %d destinations and %d sources; delete them first", name, destinations, sources)
	}
	return err
}

// Routes declare types of one's own.
func (k *Connectors) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/connectors", "body: a type of destinations, of sources or of both as YAML or JSON, see docs/emulation.md; replaces one that is not in use", k.postOne),
		call.Route("GET", "/connectors", "lists the declared types with what uses them", k.list),
		call.Route("DELETE", "/connectors/{name}", "takes a declared type away that no connection uses", k.deleteOne),
	}
}

// connectorShown is a declared type as the control API shows it.
type connectorShown struct {
	ServiceName  string   `json:"service_name"`
	Kinds        []string `json:"kinds"` // destination, source
	Destinations int      `json:"destinations"`
	Sources      int      `json:"sources"`
	Declaration  string   `json:"declaration"` // YAML
}

func showConnector(tx *store.Tx, name, text string) (connectorShown, error) {
	shown := connectorShown{ServiceName: name, Kinds: []string{}, Declaration: text}
	d, err := readDeclaration(name, []byte(text))
	if err != nil {
		return shown, err
	}
	if d.Destination != nil {
		shown.Kinds = append(shown.Kinds, "destination")
	}
	if d.Source != nil {
		shown.Kinds = append(shown.Kinds, "source")
	}
	shown.Destinations, shown.Sources, err = usedBy(tx, name)
	return shown, err
}

// postOne answers 201 for a new or changed type, and 200 for an
// existing one.
func (k *Connectors) postOne(c *call.Control) (any, error) {
	text, err := c.Text(maxDeclaration)
	if err != nil {
		return nil, err
	}
	d, err := readDeclaration("connector", text)
	if err != nil {
		return nil, err
	}
	_, changed, err := k.Declare(c.R.Context(), d)
	if err != nil {
		return nil, err
	}
	code := http.StatusOK
	if changed {
		code = http.StatusCreated
	}
	var shown connectorShown
	err = k.shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		kept, err := tx.Setting(connectorSettings + d.Name())
		if err == nil {
			shown, err = showConnector(tx, d.Name(), kept)
		}
		return err
	})
	return call.Status(code, shown), err
}

// maxDeclaration bounds a declaration in bytes.
const maxDeclaration = 1 << 20

func (k *Connectors) list(c *call.Control) (any, error) {
	list := []connectorShown{}
	err := k.shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		texts, err := tx.Settings(connectorSettings)
		for _, key := range slices.Sorted(maps.Keys(texts)) {
			shown, err := showConnector(tx, strings.TrimPrefix(key, connectorSettings), texts[key])
			if err != nil {
				return err
			}
			list = append(list, shown)
		}
		return err
	})
	return map[string]any{"connectors": list}, err
}

func (k *Connectors) deleteOne(c *call.Control) (any, error) {
	name := c.R.PathValue("name")
	err := k.Undeclare(c.R.Context(), name, "")
	if errors.Is(err, store.ErrNotFound) {
		return nil, call.Gone("declared type", foreign.Clip(name, 60))
	}
	if err != nil {
		return nil, err
	}
	return call.Done, nil
}

// Unreadable shows where, and not what: the line may hold a secret.
func Unreadable(err error) error {
	var mistake *yamldoc.Error
	if errors.As(err, &mistake) {
		return problem.Refuse(http.StatusBadRequest, "%s", mistake.Brief())
	}
	return problem.Refuse(http.StatusBadRequest, "%v", err)
}
