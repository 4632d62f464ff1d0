package destination

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// withDefaults fills what the caller left open, the form of the keys too.
func withDefaults(o conformance.Options) conformance.Options {
	o.KeyTemplate = cmp.Or(o.KeyTemplate, defaultKeyTemplate)
	return o.WithDefaults()
}

// defaultKeyTemplate marks identifiers as the judge's own.
const defaultKeyTemplate = "zz-conf-{run}-{check}-{n}"

// keys makes identifiers that carry the run, so that no one mistakes them for
// data and clean-up can name them one by one.
type keys struct {
	run, template string
	from, to      int64 // integer keys, both inclusive

	mu      sync.Mutex
	count   map[string]int // by check
	made    map[string]int // records by check
	nextInt int64
	given   bool // the author chose the template
}

func newKeys(o conformance.Options) (*keys, error) {
	k := &keys{run: o.RunID, template: o.KeyTemplate, from: o.KeyFrom, to: o.KeyTo, count: map[string]int{}, made: map[string]int{}, given: o.KeyTemplate != defaultKeyTemplate}
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

// record counts the records that a check has made, from 0.
func (k *keys) record(check string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made[check]++
	return k.made[check] - 1
}

// integer makes the next integer key, from the closed range of the run.
func (k *keys) integer() (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nextInt > k.to {
		return 0, notRun(deciderKeys, "the key range %d:%d is used up: give a longer --key-range", k.from, k.to)
	}
	n := k.nextInt
	k.nextInt++
	return n, nil
}

// key makes the next raw JSON key for an identifier field.
func (sc *scenario) key(o *object, f rpc.Field) (json.RawMessage, error) {
	if f.Type == rpc.TypeInteger {
		n, err := sc.keys.integer()
		return json.RawMessage(strconv.FormatInt(n, 10)), err
	}
	text := sc.keys.text(sc.Check().ID)
	if sc.keys.given {
		return quote(text), nil
	}
	return quote(formOfKey(f, text, o.keyForm)), nil
}

// keyForms is the number of forms that a string identifier can take: as the
// template says (an address where the field asks for one), an address, letters
// and digits only, a UUID.
const keyForms = 4

// formOfKey writes a key in a form that strict endpoints take.
func formOfKey(f rpc.Field, text string, form int) string {
	address := func() string { return text + "@example.com" }
	switch form {
	case 0:
		if emailKey(f) {
			return address()
		}
		return text
	case 1:
		if emailKey(f) {
			return text
		}
		return address()
	case 2:
		return strings.ToLower(strings.ReplaceAll(text, "-", ""))
	}
	b := hashOfKey([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// hashOfKey are the bytes of the UUID that stands for a key.
func hashOfKey(text []byte) (b [16]byte) {
	h := fnv.New128a()
	_, _ = h.Write(text) // never fails
	h.Sum(b[:0])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return b
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
