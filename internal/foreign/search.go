package foreign

import (
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"
)

// Search is what is looked for. The zero value is in every text. It is safe for parallel
// use.
type Search struct {
	lower     string
	ascii     bool
	at        int  // of the byte of lower that is rarest in JSON
	low, high byte // that byte in both cases
	folded    bool // lower has a letter that a rune beyond ASCII becomes, too
	// Of a text beyond ASCII: its longest part of ASCII, and all forms of the first rune
	// that is not. A text without either has not the whole.
	part  *Search
	forms []string
}

// rarest are the bytes of JSON texts from the rarest on, about; others are rarer still.
const rarest = "zqxjk@%+wvy/?=&bghfpmculdnr-.{}[]t9876543o_si2 ae10:,\""

// The runes beyond ASCII whose small letters are ASCII: the Kelvin sign and a capital I
// with a dot.
const kelvin, dotted = "\u212a", "\u0130"

// NewSearch prepares a search.
func NewSearch(text string) Search {
	t := Search{lower: strings.ToLower(text), ascii: true}
	best := len(rarest) + 1
	for i := range len(t.lower) {
		b := t.lower[i]
		if b >= utf8.RuneSelf {
			return beyond(t.lower)
		}
		t.folded = t.folded || b == 'k' || b == 'i'
		if rank := strings.IndexByte(rarest, b); rank < best {
			best, t.at = rank, i
		}
	}
	if t.lower != "" {
		t.low = t.lower[t.at]
		t.high = upper(t.low)
	}
	return t
}

// beyond is a search for a text that is not all ASCII.
func beyond(lower string) Search {
	t := Search{lower: lower}
	longest := ""
	for run := range strings.FieldsFuncSeq(lower, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	part := NewSearch(longest)
	t.part = &part
	at := strings.IndexFunc(lower, func(r rune) bool { return r >= utf8.RuneSelf })
	first, _ := utf8.DecodeRuneInString(lower[at:])
	if first == utf8.RuneError { // what is no UTF-8 becomes it
		return t
	}
	t.forms = []string{string(first)}
	for r := unicode.SimpleFold(first); r != first; r = unicode.SimpleFold(r) {
		t.forms = append(t.forms, string(r))
	}
	return t
}

// Empty reports whether the text is in every other.
func (t *Search) Empty() bool { return t.lower == "" }

// String is the text in small letters.
func (t *Search) String() string { return t.lower }

// InBytes is In.
func (t *Search) InBytes(text []byte) bool {
	return t.In(unsafe.String(unsafe.SliceData(text), len(text)))
}

// In reports whether a text has it, in whichever case.
func (t *Search) In(text string) bool {
	if t.lower == "" {
		return true
	}
	if !t.ascii {
		return t.may(text) && strings.Contains(strings.ToLower(text), t.lower)
	}
	if t.find(text) {
		return true
	}
	return t.folded && (strings.Contains(text, kelvin) || strings.Contains(text, dotted)) &&
		strings.Contains(strings.ToLower(text), t.lower)
}

// may reports whether a text can have one that is not all ASCII.
func (t *Search) may(text string) bool {
	if !t.part.In(text) {
		return false
	}
	for _, form := range t.forms {
		if strings.Contains(text, form) {
			return true
		}
	}
	return len(t.forms) == 0
}

// find looks for the rarest byte, in either case, and compares the others there.
func (t *Search) find(text string) bool {
	if len(text) < len(t.lower) {
		return false
	}
	// Where that byte can be.
	from, end := t.at, len(text)-(len(t.lower)-t.at-1)
	low := next(text, from, end, t.low)
	high := end
	if t.high != t.low {
		high = next(text, from, end, t.high)
	}
	for low < end || high < end {
		found := min(low, high)
		if t.same(text[found-t.at:]) {
			return true
		}
		if found == low {
			low = next(text, low+1, end, t.low)
		} else {
			high = next(text, high+1, end, t.high)
		}
	}
	return false
}

// next is where a byte is in text[from:end]; end where it is not.
func next(text string, from, end int, b byte) int {
	if at := strings.IndexByte(text[from:end], b); at >= 0 {
		return from + at
	}
	return end
}

// same reports whether a text begins with it.
func (t *Search) same(text string) bool {
	for i := range len(t.lower) {
		b := text[i]
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != t.lower[i] {
			return false
		}
	}
	return true
}

func upper(b byte) byte {
	if 'a' <= b && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}

// Plain reports whether the text is the same within a JSON string as outside: it has
// nothing that is escaped there. Then whoever has a JSON text need not decode it to
// know that no string in it has the text.
func (t *Search) Plain() bool {
	return t.ascii && !strings.ContainsFunc(t.lower, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f })
}
