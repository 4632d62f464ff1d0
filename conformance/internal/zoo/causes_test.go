package zoo_test

import (
	"cmp"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// verdict is the judgement on the cause that a run printed.
type verdict string

const (
	right      verdict = "right"
	unspecific verdict = "unspecific"
	wrongCause verdict = "wrong"
)

// printed is the text next to a finding: its cause, or what was seen where the run
// names none.
func (o outcome) printed() string { return cmp.Or(o.first.Cause, o.first.Actual) }

// cause compares the printed cause with the mistake. A cause that the table does not know
// is wrong, so that a new sentence is looked at.
func (o outcome) cause(m Mistake) verdict {
	key := keyOf(m.Language, m.Name)
	switch {
	case says(rightCauses[key], o.printed()):
		return right
	case says(vagueCauses[key], o.printed()):
		return unspecific
	default:
		return wrongCause
	}
}

// says reports whether a text has one of these phrases, written as an expression.
func says(phrases, text string) bool {
	return phrases != "" && regexp.MustCompile("(?is)"+phrases).MatchString(text)
}

// TestCausesAreKnown: the table names the cause of every mistake, and of no other.
func TestCausesAreKnown(t *testing.T) {
	var names []string
	for _, m := range Mistakes() {
		names = append(names, keyOf(m.Language, m.Name))
	}
	for _, table := range []map[string]string{rightCauses, vagueCauses} {
		for name, phrases := range table {
			require.Contains(t, names, name)
			_, err := regexp.Compile(phrases)
			require.NoError(t, err, name)
		}
	}
	for _, name := range names {
		require.NotEmpty(t, rightCauses[name], name)
	}
}
