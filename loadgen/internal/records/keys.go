package records

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

const (
	// DefaultTemplate of string identifiers; the number has keyDigits digits.
	DefaultTemplate = "zz-load-{run}-{n}"
	KeyDigits       = 12
	// IntegerKeys is how many integer identifiers a run has without a range.
	IntegerKeys = 1_000_000_000
	// All of them lie between these.
	FirstInteger, LastInteger = 2_000_000_000_000, 2_999_999_999_999
)

// Keys are the identifiers of a run: the n-th key, from 0, by the template for
// strings and in the closed range for integers.
type Keys struct {
	Template string
	From     int64
	To       int64
}

// NewKeys fills what the caller left open. Without a range a run has 10^9
// integers between 2·10^12 and 3·10^12: far above what people number by hand,
// above those of the judge, far below 2^53.
func NewKeys(template, run string, from, to int64) (Keys, error) {
	template = cmp.Or(template, DefaultTemplate)
	if !strings.Contains(template, "{n}") {
		return Keys{}, wire.Usagef("the key template %q has no {n}: every record would have the same key", template)
	}
	if !strings.Contains(template, "{run}") {
		return Keys{}, wire.Usagef("the key template %q has no {run}: no one could tell whose records they are", template)
	}
	if strings.Count(template, "{n}") > 1 {
		return Keys{}, wire.Usagef("the key template %q has {n} more than once", template)
	}
	k := Keys{Template: strings.ReplaceAll(template, "{run}", run), From: from, To: to}
	if !utf8.ValidString(k.Template) {
		return Keys{}, wire.Usagef("the key template %q is not UTF-8", template)
	}
	if from == 0 && to == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(run))
		k.From = FirstInteger + int64(h.Sum32()%1000)*IntegerKeys
		k.To = k.From + IntegerKeys - 1
	}
	switch {
	case k.From < 0:
		return Keys{}, wire.Usagef("the key range %d:%d has negative numbers", from, to)
	case k.From > k.To:
		return Keys{}, wire.Usagef("the key range %d:%d is empty", from, to)
	}
	// All keys have as many digits as the last: a request is patched in place.
	least := int64(1)
	for range len(strconv.FormatInt(k.To, 10)) - 1 {
		least *= 10
	}
	if least > 1 {
		k.From = max(k.From, least)
	}
	return k, nil
}

// Count is how many keys there are for an identifier of this kind.
func (k Keys) Count(integer bool) int64 {
	if integer {
		return k.To - k.From + 1
	}
	return 1_000_000_000_000
}

// Text is the n-th string key.
func (k Keys) Text(n int64) string {
	return strings.Replace(k.Template, "{n}", fmt.Sprintf("%0*d", KeyDigits, n), 1)
}

// Mark is the place of a key's digits in a text.
type Mark struct {
	At, Width int
	Base      int64 // added to the number of the key
}

// PutDigits writes n with leading zeros.
func PutDigits(dst []byte, n int64) {
	u := uint64(n)
	for i := len(dst) - 1; i >= 0; i-- {
		q := u / 10
		dst[i] = byte('0' + u - q*10)
		u = q
	}
}

// NextDigits writes the number after the one in old, which has the same width.
func NextDigits(dst, old []byte) {
	copy(dst, old)
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i] != '9' {
			dst[i]++
			return
		}
		dst[i] = '0'
	}
}

// Object is a destination object with what a plan needs of it.
type Object struct {
	rpc.Object
	Fields     []rpc.Field
	Operations []string
	Identifier rpc.Field
	Mapped     []rpc.Field // the identifier first
}

// ForOperation chooses what an operation maps: the identifier first, then the
// fields that it may write.
func (o Object) ForOperation(operation, identifier string, only []string) (Object, error) {
	if o.Identifier = chooseIdentifier(o.Fields, identifier); o.Identifier.APIName == "" {
		if identifier != "" {
			return o, wire.Usagef("the object %q has no field %q that may be an identifier", o.APIName, identifier)
		}
		return o, wire.Usagef("the object %q has no field of type string or integer that may be an identifier: nothing can be written into it", o.APIName)
	}
	o.Mapped = []rpc.Field{o.Identifier}
	for _, name := range only {
		if !slices.ContainsFunc(o.Fields, func(f rpc.Field) bool { return f.APIName == name }) {
			return o, wire.Usagef("the object %q has no field %q", o.APIName, name)
		}
	}
	for _, f := range o.Fields {
		writable := map[string]bool{
			rpc.OperationUpsert: f.Createable && f.Updateable, rpc.OperationInsert: f.Createable,
			rpc.OperationUpdate: f.Updateable, rpc.OperationDelete: false,
		}[operation]
		wanted := len(only) == 0 || slices.Contains(only, f.APIName)
		// A required field must be there when records are created.
		needed := f.Required && operation != rpc.OperationDelete
		if f.APIName != o.Identifier.APIName && (needed || writable && wanted) {
			o.Mapped = append(o.Mapped, f)
		}
	}
	return o, nil
}

func chooseIdentifier(fields []rpc.Field, name string) rpc.Field {
	var found rpc.Field
	for _, f := range fields {
		usable := f.Identifier && !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
		if !usable || name != "" && f.APIName != name {
			continue
		}
		if f.Required {
			return f
		}
		if found.APIName == "" {
			found = f
		}
	}
	return found
}

// Supports reports whether an object takes batches of an operation; deletes come
// with mirror.
func (o Object) Supports(operation string) bool {
	if operation == rpc.OperationDelete {
		return slices.Contains(o.Operations, rpc.OperationMirror) || slices.Contains(o.Operations, rpc.OperationDelete)
	}
	if operation == rpc.OperationUpsert && slices.Contains(o.Operations, rpc.OperationMirror) {
		return true
	}
	return slices.Contains(o.Operations, operation)
}
