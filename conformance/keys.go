package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/rpc"
)

// keys makes identifiers that carry the run, so that nobody mistakes them for
// data and clean-up can name them one by one.
type keys struct {
	run, template string
	from, to      int64 // integer keys, both inclusive

	mu      sync.Mutex
	count   map[string]int // by check
	nextInt int64
}

func newKeys(o Options) (*keys, error) {
	k := &keys{run: o.RunID, template: o.KeyTemplate, from: o.KeyFrom, to: o.KeyTo, count: map[string]int{}}
	if k.from == 0 && k.to == 0 {
		// Far above what people number by hand, far below 2^53.
		h := fnv.New32a()
		_, _ = h.Write([]byte(o.RunID))
		k.from = 1_000_000_000_000 + int64(h.Sum32()%1_000_000)*1_000_000
		k.to = k.from + 999_999
	}
	k.nextInt = k.from
	if !utf8.ValidString(o.KeyTemplate + o.RunID) {
		return nil, usage("key template %q with run id %q is not UTF-8", o.KeyTemplate, o.RunID)
	}
	return k, nil
}

// text makes the next string key of a check.
func (k *keys) text(check string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	counter := check
	if !strings.Contains(k.template, "{check}") {
		counter = "" // the number alone must keep the keys of all checks apart
	}
	k.count[counter]++
	return strings.NewReplacer("{run}", k.run, "{check}", check, "{n}", strconv.Itoa(k.count[counter])).Replace(k.template)
}

// integer makes the next integer key, from the closed range of the run.
func (k *keys) integer() (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nextInt > k.to {
		return 0, notRun("--key-range", "the key range %d:%d is used up: give a longer --key-range", k.from, k.to)
	}
	n := k.nextInt
	k.nextInt++
	return n, nil
}

// key makes the next raw JSON key for an identifier field.
func (w *world) key(f rpc.Field) (json.RawMessage, error) {
	if f.Type == rpc.TypeInteger {
		n, err := w.keys.integer()
		return json.RawMessage(strconv.FormatInt(n, 10)), err
	}
	return quote(w.keys.text(w.check.ID)), nil
}

// quote writes a JSON string without HTML escapes.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// value makes the v-th ordinary value of a field as raw JSON. Values of
// different v differ, but for booleans, which alternate.
func value(f rpc.Field, v int) json.RawMessage {
	if f.Array {
		f.Array = false
		return json.RawMessage(fmt.Sprintf("[%s,%s]", value(f, v), value(f, v+1)))
	}
	switch f.Type {
	case rpc.TypeBoolean:
		return json.RawMessage(strconv.FormatBool(v%2 == 0))
	case rpc.TypeDecimal:
		return quote(fmt.Sprintf("%d.25", 100+v))
	case rpc.TypeFloat:
		return json.RawMessage(fmt.Sprintf("%d.5", 10+v))
	case rpc.TypeInteger:
		return json.RawMessage(strconv.Itoa(1000 + v))
	case rpc.TypeDate:
		return quote(fmt.Sprintf("20%02d-%02d-%02d", 10+v%40, 1+v%12, 1+v%28))
	case rpc.TypeDateTime:
		return quote(fmt.Sprintf("20%02d-%02d-%02dT%02d:%02d:%02dZ", 10+v%40, 1+v%12, 1+v%28, v%24, v%60, (v*7)%60))
	default:
		// The name of the field keeps the values of one record apart.
		return quote(clip(fmt.Sprintf("Conformance %d %s", v, f.APIName), 60))
	}
}
