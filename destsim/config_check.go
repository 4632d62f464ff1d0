package destsim

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// check collects everything that is wrong, each with its place.
func (c Config) check() error {
	var errs []error
	bad := func(place, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %w", place, fmt.Errorf(format, args...)))
	}
	oneOf := func(place, value string, known ...string) {
		if !slices.Contains(known, value) {
			bad(place, "unknown value %q%s", value, didYouMean(value, known))
		}
	}
	for name, v := range map[string]int64{
		"maximum_batch_size": c.Speed.MaximumBatchSize, "maximum_parallel_batches": c.Speed.MaximumParallelBatches,
		"maximum_records_per_second": c.Speed.MaximumRecordsPerSecond,
	} {
		if v < 1 {
			bad("speed."+name, "must be 1 or more, not %d", v)
		}
	}
	if c.Compress != "" {
		oneOf("compress", c.Compress, "gzip", "deflate", "auto")
	}
	oneOf("skip_convention", c.SkipConvention, "failure", "success", "success-with-message")
	checkStore(c.Store, bad)
	if c.MaxBody < 0 {
		bad("max_body", "must not be negative")
	}
	c.URLSecret.check(bad)
	for name, value := range c.Headers {
		if textproto.TrimString(name) != name || name == "" || strings.ContainsAny(name+value, "\r\n") || strings.ContainsAny(name, " :\t") {
			bad(fmt.Sprintf("headers[%q]", name), "not a valid header name and value")
		}
	}
	errs = append(errs, checkObjects(c.Objects)...)
	slices.SortStableFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("check configuration: %w", err)
	}
	return nil
}

// checkStore looks at the name of a store. A URL is not repeated: it may hold a
// password.
func checkStore(name string, bad func(place, format string, args ...any)) {
	file, sqlite := strings.CutPrefix(name, "sqlite:")
	switch {
	case sqlite && file == "":
		bad("store", "sqlite needs a file: sqlite:FILE")
	case sqlite || name == "memory":
	case strings.Contains(name, "://") || strings.Contains(name, "@"):
		bad("store", "unknown kind of store: use memory or sqlite:FILE")
	default:
		bad("store", "unknown value %q%s", name, didYouMean(name, []string{"memory", "sqlite:FILE"}))
	}
}

// check looks for half a secret: one that could never match, or always.
func (u URLSecret) check(bad func(place, format string, args ...any)) {
	switch {
	case u.Query == "" && u.Path == nil:
		if u.Value != "" {
			bad("url_secret", "value without a place; set query or path")
		}
	case u.Query != "" && u.Path != nil:
		bad("url_secret", "set query or path, not both")
	case u.Value == "":
		bad("url_secret.value", "must not be empty")
	case u.Path != nil && *u.Path < 0:
		bad("url_secret.path", "must be 0 or more, not %d", *u.Path)
	}
}

// checkObjects looks at what the protocol demands of every object:
// names are permanent keys, an identifier exists, operations are of the four.
func checkObjects(objects []ObjectConfig) []error {
	var errs []error
	seen := map[string]bool{}
	for i, o := range objects {
		place := fmt.Sprintf("objects[%d]", i)
		bad := func(at, format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s%s: %w", place, at, fmt.Errorf(format, args...)))
		}
		if o.Name == "" {
			bad(".name", "must not be empty")
		}
		if seen[o.Name] {
			bad(".name", "object %q occurs twice", o.Name)
		}
		seen[o.Name] = true
		for j, op := range o.Operations {
			if err := checkOperation(op); err != nil {
				bad(fmt.Sprintf(".operations[%d]", j), "%w", err)
			}
			if slices.Contains(o.Operations[:j], op) {
				bad(fmt.Sprintf(".operations[%d]", j), "operation %q occurs twice", op)
			}
		}
		if len(o.Operations) == 0 {
			bad(".operations", "must name at least one of insert, update, upsert, mirror")
		}
		identifiers, names := 0, map[string]bool{}
		for j, f := range o.Fields {
			if key, err := f.check(); err != nil {
				bad(fmt.Sprintf(".fields[%d].%s", j, key), "%w", err)
			}
			if names[f.Name] {
				bad(fmt.Sprintf(".fields[%d].name", j), "field %q occurs twice", f.Name)
			}
			names[f.Name] = true
			if f.Identifier {
				identifiers++
			}
		}
		if identifiers == 0 {
			bad(".fields", "at least one field must be an identifier")
		}
	}
	return errs
}

// checkOperation admits what supported_operations may list; delete
// is the operation of a batch only.
func checkOperation(op string) error {
	known := []string{rpc.OperationInsert, rpc.OperationUpdate, rpc.OperationUpsert, rpc.OperationMirror}
	switch {
	case slices.Contains(known, op):
		return nil
	case op == rpc.OperationDelete:
		return errors.New(`"delete" is never advertised; "mirror" implies it`)
	}
	return fmt.Errorf("unknown operation %q%s", op, didYouMean(op, known))
}

// check gives the first problem of a field and the key that it is about.
func (f FieldConfig) check() (string, error) {
	switch {
	case f.Name == "":
		return "name", errors.New("must not be empty")
	case !slices.Contains(rpc.FieldTypes(), f.Type):
		return "type", fmt.Errorf("unknown type %q%s", f.Type, didYouMean(f.Type, rpc.FieldTypes()))
	case f.Identifier && f.Array:
		return "array", errors.New("an identifier must not be an array")
	case f.Identifier && f.Type != rpc.TypeString && f.Type != rpc.TypeInteger:
		return "type", fmt.Errorf("an identifier must be string or integer, not %s", f.Type)
	case f.Unique && f.Array:
		return "unique", errors.New("an array must not be unique")
	case f.MaxLength < 0:
		return "max_length", errors.New("must not be negative")
	case f.MaxLength > 0 && f.Type != rpc.TypeString:
		return "max_length", fmt.Errorf("only for string, not %s", f.Type)
	}
	return "", nil
}
