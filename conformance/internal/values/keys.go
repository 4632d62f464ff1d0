package values

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
)

// DefaultKeyTemplate marks identifiers as those of a run.
const DefaultKeyTemplate = "zz-conf-{run}-{check}-{n}"

// Keys makes identifiers that carry the run, so that no one mistakes them for
// data and clean-up can name them one by one.
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

// NextInteger makes the next integer key, from the closed range of the run; false when
// the range is used up.
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

// KeyForms is the number of forms that a string identifier can take: as the
// template says (an address where the field asks for one), an address, letters
// and digits only, a UUID.
const KeyForms = 4

// FormOfKey writes a key in a form that strict endpoints take.
func FormOfKey(f rpc.Field, text string, form int) string {
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
	b := HashOfKey([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// HashOfKey are the bytes of the UUID that stands for a key.
func HashOfKey(text []byte) (b [16]byte) {
	h := fnv.New128a()
	_, _ = h.Write(text) // never fails
	h.Sum(b[:0])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return b
}
