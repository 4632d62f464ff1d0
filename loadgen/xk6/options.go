package xk6

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/loadgen"
)

// config holds a script's options.
type config struct{ options loadgen.Options }

// ranged reports whether the script has its own key range.
func (c *config) ranged() bool { return c.options.KeyTo != 0 }

// option reads one option. Numbers may be texts: that is what __ENV has.
type option func(o *loadgen.Options, value any) error

// options by name. Values that are undefined or null mean the default.
var options = map[string]option{
	"token":    text(func(o *loadgen.Options) *string { return &o.Target.Token }),
	"headers":  headers,
	"ca":       authority,
	"insecure": insecure,

	"object":     shares(func(o *loadgen.Options) *[]loadgen.Share { return &o.Work.Objects }),
	"operation":  shares(func(o *loadgen.Options) *[]loadgen.Share { return &o.Work.Operations }),
	"write":      flag(func(o *loadgen.Options) *bool { return &o.Write }),
	"batchSize":  whole(1, 1_000_000, func(o *loadgen.Options, n int64) { o.Work.BatchSize = int(n) }),
	"fields":     fields,
	"identifier": text(func(o *loadgen.Options) *string { return &o.Work.Identifier }),
	"template":   template,
	"repeatKeys": share,
	"prime":      whole(1, 100_000_000, func(o *loadgen.Options, n int64) { o.Work.Prime = int(n) }),
	"maxRecords": whole(1, math.MaxInt64, func(o *loadgen.Options, n int64) { o.MaxRecords = n }),

	"run":         text(func(o *loadgen.Options) *string { return &o.RunID }),
	"seed":        whole(1, 1<<32-1, func(o *loadgen.Options, n int64) { o.Seed = uint64(n) }),
	"keyTemplate": text(func(o *loadgen.Options) *string { return &o.KeyTemplate }),
	"keyRange":    keyRange,

	"timeout":        timeout,
	"compress":       flag(func(o *loadgen.Options) *bool { return &o.Transport.Compress }),
	"newConnections": flag(func(o *loadgen.Options) *bool { return &o.Transport.Reconnect }),
	"standardClient": flag(func(o *loadgen.Options) *bool { return &o.Transport.Standard }),
	"http2":          flag(func(o *loadgen.Options) *bool { return &o.Transport.HTTP2 }),
	"proxy":          text(func(o *loadgen.Options) *string { return &o.Transport.Proxy }),
}

// newConfig reads the options of a script. The error names the field.
func newConfig(url string, given map[string]any) (*config, error) {
	c := &config{loadgen.Options{Closed: true, Target: loadgen.Target{URL: url}, Version: "k6"}}
	names := slices.Sorted(maps.Keys(given))
	for _, name := range names {
		read, known := options[name]
		if !known {
			return nil, fmt.Errorf("%s: there is no such option; there are %s", name, strings.Join(slices.Sorted(maps.Keys(options)), ", "))
		}
		if given[name] == nil {
			continue
		}
		if err := read(&c.options, given[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	o := c.options
	switch {
	case len(o.Work.Objects) == 0:
		return nil, fmt.Errorf("object: name the object that records may be written into")
	case !o.Write:
		return nil, fmt.Errorf("write: a load writes records into the destination; say so with write: true")
	case o.Target.Roots != nil && o.Target.Development == "on":
		return nil, fmt.Errorf("insecure: with ca the chain is verified; leave one of them out")
	}
	if err := o.Check(); err != nil {
		return nil, inFields(err)
	}
	return c, nil
}

func text(at func(*loadgen.Options) *string) option {
	return func(o *loadgen.Options, value any) error {
		s, ok := value.(string)
		if !ok {
			return fmt.Errorf("it must be a text") // and may be secret
		}
		*at(o) = s
		return nil
	}
}

func flag(at func(*loadgen.Options) *bool) option {
	return func(o *loadgen.Options, value any) error {
		b, ok := value.(bool)
		if !ok {
			return fmt.Errorf("it must be true or false, not %q", fmt.Sprint(value))
		}
		*at(o) = b
		return nil
	}
}

func whole(least, most int64, set func(*loadgen.Options, int64)) option {
	return func(o *loadgen.Options, value any) error {
		n, ok := integer(value)
		if !ok || n < least || n > most {
			return fmt.Errorf("it must be a whole number from %d to %d, not %q", least, most, fmt.Sprint(value))
		}
		set(o, n)
		return nil
	}
}

func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// share of keys that are repeated, 0 to 1.
func share(o *loadgen.Options, value any) error {
	f, ok := number(value)
	if !ok || f < 0 || f > 1 || math.IsNaN(f) {
		return fmt.Errorf("it must be a number from 0 to 1, not %q", fmt.Sprint(value))
	}
	o.Work.Repeats = f
	return nil
}

// shares are one name, several, or weights by name.
func shares(at func(*loadgen.Options) *[]loadgen.Share) option {
	return func(o *loadgen.Options, value any) error {
		list := at(o)
		switch v := value.(type) {
		case string:
			*list = []loadgen.Share{{Name: v}}
		case []any:
			for _, name := range v {
				*list = append(*list, loadgen.Share{Name: fmt.Sprint(name)})
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				weight, ok := number(v[name])
				if !ok || !(weight > 0) || weight > 1e9 {
					return fmt.Errorf("the weight of %q must be a number above 0, not %q", name, fmt.Sprint(v[name]))
				}
				*list = append(*list, loadgen.Share{Name: name, Weight: weight})
			}
		default:
			return fmt.Errorf("it must be a name, or weights by name such as {upsert: 9, delete: 1}, not %v", value)
		}
		if slices.ContainsFunc(*list, func(s loadgen.Share) bool { return s.Name == "" }) {
			return fmt.Errorf("a name is empty")
		}
		return nil
	}
}

func headers(o *loadgen.Options, value any) error {
	given, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("they must be an object, such as {'X-Tenant': 'a'}")
	}
	o.Target.Headers = map[string]string{}
	for name, v := range given {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("%s must be a text", name)
		}
		o.Target.Headers[name] = s
	}
	return nil
}

func fields(o *loadgen.Options, value any) error {
	list, ok := value.([]any)
	for _, v := range list {
		name, isText := v.(string)
		ok = ok && isText && name != ""
		o.Work.Fields = append(o.Work.Fields, name)
	}
	if !ok || len(list) == 0 {
		return fmt.Errorf("they must be a list of names, such as ['last_name', 'age']")
	}
	return nil
}

// template is one record with placeholders, as an object or as its JSON.
func template(o *loadgen.Options, value any) error {
	switch v := value.(type) {
	case string:
		o.Work.Template = []byte(v)
	case map[string]any:
		encoded, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("it cannot be encoded as JSON: %w", err)
		}
		o.Work.Template = encoded
	default:
		return fmt.Errorf("it must be an object, such as {last_name: '{{words}}'}, not %v", value)
	}
	if len(o.Work.Template) == 0 {
		return fmt.Errorf("it is empty")
	}
	return nil
}

// authority trusts the certificates of a text in PEM, and no others.
func authority(o *loadgen.Options, value any) error {
	pem, ok := value.(string)
	o.Target.Roots = x509.NewCertPool()
	if !ok || !o.Target.Roots.AppendCertsFromPEM([]byte(pem)) {
		return fmt.Errorf("it must hold certificates in PEM: open('ca.pem') in the init context gives the text of a file")
	}
	return nil
}

// insecure accepts plain http and chains that do not verify, or refuses both;
// without it that depends on the address.
func insecure(o *loadgen.Options, value any) error {
	switch value {
	case true:
		o.Target.Development = "on"
	case false:
		o.Target.Development = "off"
	default:
		return fmt.Errorf("it must be true or false, not %q", fmt.Sprint(value))
	}
	return nil
}

func keyRange(o *loadgen.Options, value any) error {
	list, _ := value.([]any)
	if len(list) == 2 {
		from, ok := integer(list[0])
		to, ok2 := integer(list[1])
		if ok && ok2 && from >= 0 && from <= to && to > 0 {
			o.KeyFrom, o.KeyTo = from, to
			return nil
		}
	}
	return fmt.Errorf("it must be two whole numbers, [FROM, TO], from 0 up")
}

// timeout of a call in milliseconds, or as a text with a unit.
func timeout(o *loadgen.Options, value any) error {
	d, err := time.ParseDuration(fmt.Sprint(value))
	if n, ok := number(value); ok {
		d, err = time.Duration(n*float64(time.Millisecond)), nil
	}
	if err != nil || d <= 0 || d > time.Hour {
		return fmt.Errorf("it must be milliseconds or a text such as '30s', above 0 and at most an hour, not %q", fmt.Sprint(value))
	}
	o.Transport.Timeout = d
	return nil
}

// words puts the fields of a script where package loadgen names flags.
var words = strings.NewReplacer(
	"--development on", "insecure: true", "--tls-roots FILE", "ca", "--token-env", "token", "--object NAME", "object",
	"--operation upsert=9,delete=1", "operation: {upsert: 9, delete: 1}", "max-records", "maxRecords", "destkit load https", "https",
)

func inWords(message string) string { return words.Replace(message) }

// inFields is inWords for an error.
func inFields(err error) error { return fmt.Errorf("%s", inWords(err.Error())) }
