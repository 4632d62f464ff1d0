package destsim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// Config describes a simulated destination. The zero value is the preset
// "default". What is set here wins over the preset; Objects replaces its
// objects as a whole.
type Config struct {
	// Preset is one of Presets(); "" is "default" unless Objects are given.
	Preset  string         `yaml:"preset"`
	Objects []ObjectConfig `yaml:"objects"`
	// Speed is the answer of get_sync_speed; 1000/16/1000000 when zero.
	Speed rpc.Speed `yaml:"speed"`
	// RateLimit is the value of X-RateLimit-Limit in requests per second
	// (spec 8); 0 takes that of the preset, -1 leaves the header out.
	RateLimit int64 `yaml:"rate_limit"`
	// Token is the bearer token that every call must carry (spec 5.2.2); ""
	// asks for none. TokenEnv names a variable that the program reads it from.
	Token    string `yaml:"token"`
	TokenEnv string `yaml:"token_env"`
	// URLSecret is the unguessable segment of the URL (spec 5.2.3).
	URLSecret URLSecret `yaml:"url_secret"`
	// Headers are added to every reply of the endpoint.
	Headers map[string]string `yaml:"headers"`
	// Compress replies: "", gzip, deflate or auto, and only when offered.
	Compress string `yaml:"compress"`
	// EnforceLimits makes the destination refuse what exceeds its own Speed
	// and RateLimit; otherwise it only declares them.
	EnforceLimits bool `yaml:"enforce_limits"`
	// SkipConvention says how a record that does not qualify is reported:
	// failure (default), success, success-with-message.
	SkipConvention string `yaml:"skip_convention"`
	// Store is memory (default) or sqlite:FILE.
	Store string `yaml:"store"`
	// ControlToken opens /_control beyond loopback.
	ControlToken string `yaml:"control_token"`
	// KeepBodies keeps the bodies of calls for the journal, without secrets: up to
	// 64 KiB of each, 16 MiB of all. POST /_control/journal switches it, too.
	KeepBodies bool `yaml:"keep_bodies"`
	// Profile answers GET /_control/pprof and below, to whom /_control is open,
	// with profiles of the process; nil: there is nothing.
	Profile http.Handler `yaml:"-"`
	// Violate names the rules to break, see Violations.
	Violate []string `yaml:"violate"`
	// Seed of every random choice; the same seed and calls give the same bytes.
	Seed uint64 `yaml:"seed"`
	// MaxBody bounds a request body in bytes; 64 MiB when zero.
	MaxBody int64 `yaml:"max_body"`
	// Delays are the durations that violations use.
	Delays Delays `yaml:"delays"`
	// Clock replaces the system clock.
	Clock func() time.Time `yaml:"-"`
}

// URLSecret is the part of the URL that the destination verifies: either the
// query parameter Query or the path segment number Path (from 0).
type URLSecret struct {
	Query string `yaml:"query"`
	Path  *int   `yaml:"path"`
	Value string `yaml:"value"`
}

// Delays are the durations of violations. Zero takes the default, which suits
// deadlines of 10 s for planning and 30 s for a batch.
type Delays struct {
	// Hang is the longest time for which a call gets no answer (35 s).
	Hang time.Duration `yaml:"hang"`
	// Planning outlasts the deadline of a planning call (12 s).
	Planning time.Duration `yaml:"planning"`
	// Batch outlasts the deadline of a batch (36 s).
	Batch time.Duration `yaml:"batch"`
	// Stall is a pause in the middle of a reply that stays within the deadline
	// of a planning call (6 s).
	Stall time.Duration `yaml:"stall"`
	// Write is how late a write lands that was acknowledged at once (300 ms).
	Write time.Duration `yaml:"write"`
	// Cache is the time to live of a cache that must not exist (60 s).
	Cache time.Duration `yaml:"cache"`
	// Retry is how long a destination retries by itself (60 s).
	Retry time.Duration `yaml:"retry"`
	// Meet is how long parallel calls wait for one another (50 ms).
	Meet time.Duration `yaml:"meet"`
	// Work is the time of one unit of slow work under load (20 ms).
	Work time.Duration `yaml:"work"`
	// Down is how long a process that a call has ended is gone (5 s).
	Down time.Duration `yaml:"down"`
}

// ObjectConfig is one object of the destination.
type ObjectConfig struct {
	Name  string `yaml:"name" json:"name"`
	Label string `yaml:"label" json:"label"` // the name when empty
	// CanCreateFields: unknown fields of a plan are created on write.
	CanCreateFields bool `yaml:"can_create_fields" json:"can_create_fields"`
	// Operations is a list of insert, update, upsert and mirror.
	Operations []string      `yaml:"operations" json:"operations"`
	Fields     []FieldConfig `yaml:"fields" json:"fields"`
}

// FieldConfig is one field of an object.
type FieldConfig struct {
	Name       string `yaml:"name" json:"name"`
	Label      string `yaml:"label" json:"label"` // the name when empty
	Type       string `yaml:"type" json:"type"`
	Array      bool   `yaml:"array" json:"array"`
	Identifier bool   `yaml:"identifier" json:"identifier"` // implies Unique
	Required   bool   `yaml:"required" json:"required"`
	Unique     bool   `yaml:"unique" json:"unique"`
	Createable *bool  `yaml:"createable" json:"createable"` // true when absent
	Updateable *bool  `yaml:"updateable" json:"updateable"` // true when absent
	// MaxLength bounds a string in Unicode code points; 0 is unbounded.
	MaxLength int `yaml:"max_length" json:"max_length"`
}

// Described is the configuration of an object that others describe in the words
// of the protocol; operations are those of ObjectConfig.
func Described(object rpc.Object, operations []string, fields []rpc.Field) ObjectConfig {
	config := ObjectConfig{
		Name: object.APIName, Label: object.Label, Operations: operations,
		CanCreateFields: object.CanCreateFields == rpc.CanCreateOnWrite,
	}
	for _, f := range fields {
		config.Fields = append(config.Fields, FieldConfig{
			Name: f.APIName, Label: f.Label, Type: f.Type, Array: f.Array, Identifier: f.Identifier,
			Required: f.Required, Createable: &f.Createable, Updateable: &f.Updateable,
		})
	}
	return config
}

// resolve merges the preset, fills the defaults and checks the result.
func (c Config) resolve() (Config, error) {
	if c.Preset == "" && len(c.Objects) == 0 {
		c.Preset = DefaultPreset
	}
	if c.Preset != "" {
		base, err := Preset(c.Preset)
		if err != nil {
			return c, err
		}
		c.merge(base)
	}
	c.Speed = mergeSpeed(c.Speed, rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1000000})
	c.RateLimit = max(c.RateLimit, 0)
	c.SkipConvention = cmp.Or(c.SkipConvention, "failure")
	c.Store = cmp.Or(c.Store, "memory")
	c.MaxBody = cmp.Or(c.MaxBody, 64<<20)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	c.Delays = c.Delays.resolve()
	return c, c.check()
}

// merge takes from the preset what is not set.
func (c *Config) merge(base Config) {
	if len(c.Objects) == 0 {
		c.Objects = base.Objects
	}
	c.Speed = mergeSpeed(c.Speed, base.Speed)
	c.RateLimit = cmp.Or(c.RateLimit, base.RateLimit)
	c.Compress = cmp.Or(c.Compress, base.Compress)
	c.SkipConvention = cmp.Or(c.SkipConvention, base.SkipConvention)
}

// mergeSpeed fills single numbers: a user may set only one of the three.
func mergeSpeed(s, base rpc.Speed) rpc.Speed {
	return rpc.Speed{
		MaximumBatchSize:        cmp.Or(s.MaximumBatchSize, base.MaximumBatchSize),
		MaximumParallelBatches:  cmp.Or(s.MaximumParallelBatches, base.MaximumParallelBatches),
		MaximumRecordsPerSecond: cmp.Or(s.MaximumRecordsPerSecond, base.MaximumRecordsPerSecond),
	}
}

// resolve sets the defaults that Delays documents.
func (d Delays) resolve() Delays {
	return Delays{
		Hang:     cmp.Or(d.Hang, 35*time.Second),
		Planning: cmp.Or(d.Planning, 12*time.Second),
		Batch:    cmp.Or(d.Batch, 36*time.Second),
		Stall:    cmp.Or(d.Stall, 6*time.Second),
		Write:    cmp.Or(d.Write, 300*time.Millisecond),
		Cache:    cmp.Or(d.Cache, 60*time.Second),
		Retry:    cmp.Or(d.Retry, 60*time.Second),
		Meet:     cmp.Or(d.Meet, 50*time.Millisecond),
		Work:     cmp.Or(d.Work, 20*time.Millisecond),
		Down:     cmp.Or(d.Down, 5*time.Second),
	}
}

// DefaultPreset is the preset of a zero Config.
const DefaultPreset = "default"

// presets by name; each call makes a new value, so callers may change it.
var presets = map[string]func() Config{
	DefaultPreset: defaultPreset,
	"crm":         crmPreset,
	"events":      eventsPreset,
	"catalogue":   cataloguePreset,
}

// Presets lists the names that Config.Preset takes, sorted. Besides the
// named ones there is one per field type: "type-boolean", "type-decimal", …
func Presets() []string {
	names := []string{}
	for name := range presets {
		names = append(names, name)
	}
	for _, t := range rpc.FieldTypes() {
		names = append(names, "type-"+t)
	}
	slices.Sort(names)
	return names
}

// Preset gives the configuration of a preset.
func Preset(name string) (Config, error) {
	if make, ok := presets[name]; ok {
		return make(), nil
	}
	if t, ok := strings.CutPrefix(name, "type-"); ok && slices.Contains(rpc.FieldTypes(), t) {
		return typePreset(t), nil
	}
	return Config{}, fmt.Errorf("preset: unknown preset %q%s", name, didYouMean(name, Presets()))
}

var allOperations = []string{
	rpc.OperationUpsert, rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationMirror,
}

// declared adds the limits that the presets share: they are declared, and
// enforced only with Config.EnforceLimits.
func declared(objects ...ObjectConfig) Config {
	return Config{
		Objects:   objects,
		Speed:     rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 16, MaximumRecordsPerSecond: 1000000},
		RateLimit: 100000,
	}
}

// entity makes an object of a preset out of its name and its fields. A field is a name and
// a type: "email! string" is an identifier, "last_name* string" required, "tags string[]" an
// array. Labels say the same in words.
func entity(name string, operations []string, fields ...string) ObjectConfig {
	o := ObjectConfig{Name: name, Label: labelOf(name), Operations: slices.Clone(operations)}
	for _, text := range fields {
		name, typ, _ := strings.Cut(text, " ")
		f := FieldConfig{Identifier: strings.HasSuffix(name, "!"), Required: strings.ContainsAny(name, "!*")}
		f.Name, f.Unique = strings.TrimRight(name, "!*"), f.Identifier
		f.Type, f.Array = strings.CutSuffix(typ, "[]")
		f.Label = labelOf(f.Name)
		o.Fields = append(o.Fields, f)
	}
	return o
}

// labelOf is "Order ID" of order_id, and "Last name" of last_name.
func labelOf(name string) string {
	words := strings.Split(name, "_")
	if last := len(words) - 1; words[last] == "id" {
		words[last] = "ID"
	}
	label := strings.Join(words, " ")
	return strings.ToUpper(label[:1]) + label[1:]
}

// defaultPreset has all that the catalogue of checks looks at.
func defaultPreset() Config {
	return declared(
		entity("contact", allOperations, "email! string", "last_name* string", "first_name string", "age integer", "score float",
			"balance decimal", "subscribed boolean", "birth_date date", "last_seen_at date_time", "tags string[]", "lucky_numbers integer[]"),
		entity("order", allOperations, "order_number! string", "order_id! integer", "status string", "total decimal", "placed_at date_time"),
		eventObject(),
	)
}

// eventObject takes fields that it has never seen.
func eventObject() ObjectConfig {
	o := entity("event", []string{rpc.OperationInsert, rpc.OperationUpsert}, "event_id! string", "name string", "occurred_at date_time")
	o.CanCreateFields = true
	return o
}

// crmPreset is a small customer system with accounts, people and deals.
func crmPreset() Config {
	person := entity("person", allOperations, "email! string", "last_name* string", "first_name string", "account_domain string", "opted_in boolean", "birthday date")
	person.CanCreateFields = true
	return declared(
		entity("account", allOperations, "domain! string", "name* string", "employees integer", "annual_revenue decimal", "industries string[]"),
		person,
		entity("deal", []string{rpc.OperationUpsert, rpc.OperationUpdate}, "deal_id! integer", "stage* string", "amount decimal", "probability float", "closed_at date_time"),
	)
}

// eventsPreset only takes events in, as fast as they come.
func eventsPreset() Config {
	c := declared(eventObject())
	c.Speed = rpc.Speed{MaximumBatchSize: 5000, MaximumParallelBatches: 50, MaximumRecordsPerSecond: 5000000}
	return c
}

// typePreset has one object with one field of a type, alone and as an array.
func typePreset(t string) Config {
	return declared(entity("sample", allOperations, "id! string", "value "+t, "values "+t+"[]"))
}

// cataloguePreset has ten objects over every set of operations of use.
func cataloguePreset() Config {
	sets := [][]string{
		allOperations, {rpc.OperationUpsert}, {rpc.OperationInsert}, {rpc.OperationUpdate}, {rpc.OperationMirror},
		{rpc.OperationInsert, rpc.OperationUpdate}, {rpc.OperationUpsert, rpc.OperationMirror},
		{rpc.OperationInsert, rpc.OperationUpsert}, {rpc.OperationUpdate, rpc.OperationUpsert},
		{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert},
	}
	names := []string{"account", "contact", "lead", "ticket", "product", "invoice", "campaign", "visit", "store", "survey"}
	objects := make([]ObjectConfig, len(names))
	for i, name := range names {
		objects[i] = entity(name, sets[i], name+"_id! "+[]string{rpc.TypeString, rpc.TypeInteger}[i%2],
			"name string", "rank integer", "active boolean", "changed_at date_time", "labels string[]")
	}
	return declared(objects...)
}
