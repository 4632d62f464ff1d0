package postgres

import (
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every text has one form, and two texts never share one.
func TestTexts(t *testing.T) {
	texts := []string{"", "plain", "a\x00b", "\x1a", "\x1a00", "\x1a1a", "\xff", "\xed\xa0\x80", "\x1a\x00\xfe☃", "ends\x1a", "\xf0\x9f"}
	stored := map[string]bool{}
	for _, text := range texts {
		encoded := string(encodeText(text))
		require.False(t, stored[encoded], "%q", text)
		stored[encoded] = true
		require.Equal(t, text, decodeText([]byte(encoded)))
	}
}

// Where the statements stand in for each other, they are numbered.
func TestNumbered(t *testing.T) {
	require.Equal(t, "SELECT $1, $2", numbered("SELECT ?, ?"))
	require.Equal(t, "SELECT 1", numbered("SELECT 1"))
	require.Regexp(t, regexp.MustCompile(`^\w+$`), DefaultSchema)
	require.False(t, errors.Is(ErrUnfit, ErrUnavailable))
}
