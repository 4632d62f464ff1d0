package values

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// DefaultKeyTemplate marks identifiers as those of a run.
const DefaultKeyTemplate = "zz-conf-{run}-{check}-{n}"

// Keys makes identifiers that carry the run, so that clean-up can name them one by one.
type Keys struct {
	Run, Template string
	From, To      int64 // integer keys, both inclusive
	Given         bool  // the author chose the template

	mu      sync.Mutex
	count   map[string]int // by check
	made    map[string]int // records by check
	nextInt int64
}

// NewKeys makes the keys of a run. The integers are far above what people number by
// hand and far below 2^53, where from and to are both 0.
func NewKeys(run, template string, from, to int64) *Keys {
	if from == 0 && to == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(run)) // never fails
		from = 1_000_000_000_000 + int64(h.Sum32()%1_000_000)*1_000_000
		to = from + 999_999
	}
	return &Keys{
		Run: run, Template: template, From: from, To: to, Given: template != DefaultKeyTemplate,
		count: map[string]int{}, made: map[string]int{}, nextInt: from,
	}
}

// NextText makes the next string key of a check.
func (k *Keys) NextText(check string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	counter := check
	if !strings.Contains(k.Template, "{check}") {
		counter = "" // the number alone must keep the keys of all checks apart
	}
	k.count[counter]++
	return strings.NewReplacer("{run}", k.Run, "{check}", check, "{n}", strconv.Itoa(k.count[counter])).Replace(k.Template)
}

// NextRecord counts the records that a check has made, from 0.
func (k *Keys) NextRecord(check string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made[check]++
	return k.made[check] - 1
}

// NextInteger makes the next integer key; false when the closed range of the run is used up.
func (k *Keys) NextInteger() (n int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nextInt > k.To {
		return 0, false
	}
	k.nextInt++
	return k.nextInt - 1, true
}

// Made reports whether a text is a key of this run, whichever record has it.
func (k *Keys) Made(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n >= k.From && n < k.nextInt
	}
	return strings.Contains(k.Template, "{run}") && strings.Contains(strings.ToLower(text), strings.ToLower(k.Run))
}

// UnusedInteger is an integer that no record has had so far.
func (k *Keys) UnusedInteger() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nextInt
}

// OddKey is the n-th number beyond 2^53 of a run, which doubles cannot hold.
func OddKey(run int64, n int) int64 { return 9007199254740993 + 2*(run*1000+int64(n)) }

// KeyForms is the number of forms of a string identifier: the template's (an address where the
// field requires one), the other of these, letters and digits only, a UUID.
const KeyForms = 4

// FormOfKey writes a key in a form that strict endpoints take.
func FormOfKey(f rpc.Field, text string, form int) string {
	switch form {
	case 0, 1:
		if emailKey(f) == (form == 0) {
			text += "@example.com"
		}
		return text
	case 2:
		return strings.ToLower(strings.ReplaceAll(text, "-", ""))
	}
	b := HashOfKey([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// HashOfKey are the bytes of the UUID that represents a key.
func HashOfKey(text []byte) (b [16]byte) {
	h := fnv.New128a()
	_, _ = h.Write(text) // never fails
	h.Sum(b[:0])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return b
}

// special are the characters that end a key in a URL, a pattern, a statement, a page or a path.
const special = `?#%&+;/\\'"<>_*[]`

// AlikeKeys describes the difference of two keys that many systems take for one; "" for others.
func AlikeKeys(a, b string) string {
	spaces := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	one, other := []rune(a), []rune(b)
	wild := len(one) == len(other)
	for i := 0; wild && i < len(one); i++ { // an underscore matches any character in a pattern
		wild = one[i] == other[i] || one[i] == '_' || other[i] == '_'
	}
	switch {
	case a == b:
		return ""
	case strings.EqualFold(a, b):
		return "in case only"
	case spaces(a) == spaces(b):
		return "in spaces only"
	case Normalise(a) == Normalise(b):
		return "in their Unicode form only"
	case strings.Trim(a+b, "0123456789") == "" && strings.TrimLeft(a, "0") == strings.TrimLeft(b, "0"):
		return "in leading zeros only"
	case beforeSpecial(a, b) != 0:
		return "behind a " + string(beforeSpecial(a, b)) + " only"
	case wild:
		return "where one has _ only"
	case asDouble(a) == asDouble(b):
		return "as texts or long integers, and not as doubles"
	}
	return ""
}

// asDouble is a key as a number of double precision; what is none equals nothing.
func asDouble(key string) float64 {
	if f, err := strconv.ParseFloat(key, 64); err == nil {
		return f
	}
	return math.NaN()
}

// beforeSpecial is the character up to which two keys are the same, 0 without one.
func beforeSpecial(a, b string) rune {
	for i, r := range a {
		if strings.ContainsRune(special, r) && r != '_' && len(b) > i && a[:i+1] == b[:i+1] {
			return r
		}
	}
	return 0
}

// Normalise brings a text into Unicode form NFC, as an endpoint may have done.
func Normalise(s string) string { return norm.NFC.String(s) }

// Quote writes a JSON string without HTML escapes.
func Quote(s string) json.RawMessage {
	text, _ := rawjson.Marshal(s) // a text always has a JSON form
	return text
}

// Text is a JSON string decoded, halves of surrogate pairs apart, or the JSON text of another value.
func Text(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return string(raw)
	}
	text, _ := rawjson.Unescape(nil, raw[1:len(raw)-1])
	return string(text)
}
