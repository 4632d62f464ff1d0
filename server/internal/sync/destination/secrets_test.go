package destination

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClean(t *testing.T) {
	r := newRedactor([]string{"s3cret-Value", "abc", ""})
	cases := []struct{ text, want string }{
		{"", ""},
		{"nothing here", "nothing here"},
		{"abc is too short to look for", "abc is too short to look for"},
		{"it is s3cret-Value!", "it is [hidden]!"},
		{"S3CRET-VALUE and s3cret-value", "[hidden] and [hidden]"},
		{"s3cret-Values3cret-Value", "[hidden][hidden]"},
		{"czNjcmV0LVZhbHVl", "[hidden]"},
		{"cut s3cre…", "cut [hidden]…"},
		{"cut s3cret-V", "cut [hidden]"},
		{"ends with s3c…", "ends with s3c…"},
		{`\u00733cret-Value`, withheld},
		{"%733cret-Value", withheld},
		{"&#115;3cret-Value", withheld},
		{"%255c%25755c", "%255c%25755c"},
	}
	for _, c := range cases {
		require.Equal(t, c.want, r.Clean(c.text), c.text)
	}
	require.Equal(t, "anything", newRedactor(nil).Clean("anything"))
}

func TestForeign(t *testing.T) {
	r := newRedactor([]string{"secret"})
	require.Equal(t, "a b \uFFFD", r.Foreign("a\nb\x00\xff"))
	require.Len(t, []rune(r.Foreign(strings.Repeat("é", 2*maxForeign))), maxForeign+1)
}

// Whatever stands around it, a secret does not come through.
func FuzzClean(f *testing.F) {
	f.Add("before ", " after", "secret-1234")
	f.Add("%", "\\u0073", "a%41b\"c")
	f.Fuzz(func(t *testing.T, before, after, secret string) {
		if len(secret) < shortSecret || strings.Contains(fold(hidden+withheld), fold(secret)) || strings.ContainsAny(secret, "[]") {
			return // a placeholder may hold or complete it
		}
		require.NotContains(t, fold(newRedactor([]string{secret}).Clean(before+secret+after)), fold(secret))
	})
}
