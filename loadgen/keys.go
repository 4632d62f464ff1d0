package loadgen

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/loadgen/internal/failure"
)

const (
	// DefaultKeyTemplate of string identifiers; the number has keyDigits digits.
	DefaultKeyTemplate = "zz-load-{run}-{n}"
	keyDigits          = 12
	// integerKeys is how many integer identifiers a run has without a range.
	integerKeys = 1_000_000_000
	// All of them lie between these.
	firstInteger, lastInteger = 2_000_000_000_000, 2_999_999_999_999
)

// Keys says which identifiers a run uses, so that nobody mistakes them for data
// and clean-up can name them one by one: the n-th key of the run, from 0.
type Keys struct {
	// Template of string identifiers; {run} and {n} are filled in. All keys of a
	// run have the same length.
	Template string `json:"template"`
	// From and To are the closed range of integer identifiers.
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RunKeys are the keys of a run that is known by its id, as Clean takes them. template
// is "" and from and to are 0 for a run without keys of its own.
func RunKeys(run, template string, from, to int64) (Keys, error) {
	if run == "" || strings.ContainsAny(run, "{}") {
		return Keys{}, failure.Usagef("%q is no id of a run: it is in the keys, such as e9e7dc in zz-load-e9e7dc-000000000000", run)
	}
	return newKeys(template, run, from, to)
}

// newKeys fills what the caller left open. Without a range a run has 10^9
// integers between 2·10^12 and 3·10^12: far above what people number by hand,
// above those of the judge, far below 2^53.
func newKeys(template, run string, from, to int64) (Keys, error) {
	if template == "" {
		template = DefaultKeyTemplate
	}
	if !strings.Contains(template, "{n}") {
		return Keys{}, failure.Usagef("the key template %q has no {n}: every record would have the same key", template)
	}
	if !strings.Contains(template, "{run}") {
		return Keys{}, failure.Usagef("the key template %q has no {run}: nobody could tell whose records they are", template)
	}
	if strings.Count(template, "{n}") > 1 {
		return Keys{}, failure.Usagef("the key template %q has {n} more than once", template)
	}
	k := Keys{Template: strings.ReplaceAll(template, "{run}", run), From: from, To: to}
	if !utf8.ValidString(k.Template) {
		return Keys{}, failure.Usagef("the key template %q is not UTF-8", template)
	}
	if from == 0 && to == 0 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(run))
		k.From = firstInteger + int64(h.Sum32()%1000)*integerKeys
		k.To = k.From + integerKeys - 1
	}
	switch {
	case k.From < 0:
		return Keys{}, failure.Usagef("the key range %d:%d has negative numbers", from, to)
	case k.From > k.To:
		return Keys{}, failure.Usagef("the key range %d:%d is empty", from, to)
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

// count is how many keys there are for an identifier of this kind.
func (k Keys) count(integer bool) int64 {
	if integer {
		return k.To - k.From + 1
	}
	return 1_000_000_000_000
}

// text is the n-th string key.
func (k Keys) text(n int64) string {
	return strings.Replace(k.Template, "{n}", fmt.Sprintf("%0*d", keyDigits, n), 1)
}

// mark is a place in a text where the digits of a key stand.
type mark struct {
	at, width int
	base      int64 // added to the number of the key
}

// putDigits writes n with leading zeros.
func putDigits(dst []byte, n int64) {
	u := uint64(n)
	for i := len(dst) - 1; i >= 0; i-- {
		q := u / 10
		dst[i] = byte('0' + u - q*10)
		u = q
	}
}

// nextDigits writes the number after the one in old, which has the same width.
func nextDigits(dst, old []byte) {
	copy(dst, old)
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i] != '9' {
			dst[i]++
			return
		}
		dst[i] = '0'
	}
}
