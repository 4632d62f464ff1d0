package yamldoc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type sample struct {
	Name    string        `yaml:"name"`
	Count   int           `yaml:"count"`
	Timeout time.Duration `yaml:"timeout"`
	On      bool          `yaml:"on"`
	Parts   []part        `yaml:"parts"`
	Hidden  string        `yaml:"-"`
}

type part struct {
	Command []string `yaml:"command"`
}

func TestDecodePointsAtTheMistake(t *testing.T) {
	for name, tc := range map[string]struct{ src, want string }{
		"unknown key": {
			"name: a\ncuont: 3\n",
			"f.yaml:2:1: unknown key \"cuont\", did you mean \"count\"?\n     2 | cuont: 3\n       | ^",
		},
		"unknown key far from all": {
			"zebra: 3\n",
			"f.yaml:1:1: unknown key \"zebra\"; known are name, count, timeout, on, parts, command\n     1 | zebra: 3\n       | ^",
		},
		"unknown key below": {
			"parts:\n  - comand: [a]\n",
			"f.yaml:2:5: unknown key \"comand\", did you mean \"command\"?\n     2 |   - comand: [a]\n       |     ^",
		},
		"a key of another place": {
			"command: [a]\n",
			"f.yaml:1:1: the key \"command\" does not belong here\n     1 | command: [a]\n       | ^",
		},
		"unknown key behind a byte order mark": {
			"\ufeffcuont: 3\n",
			"f.yaml:1:1: unknown key \"cuont\", did you mean \"count\"?\n     1 | cuont: 3\n       | ^",
		},
		"key twice": {
			"name: a\nname: b\n",
			"f.yaml:2:1: the key \"name\" is here a second time, the first is in line 1\n     2 | name: b\n       | ^",
		},
		"wrong type": {
			"count: many\n",
			"f.yaml:1:8: expected a whole number, found a string\n     1 | count: many\n       |        ^",
		},
		"a mapping where a list belongs": {
			"parts: 3\n",
			"f.yaml:1:8: expected a list, found a whole number\n     1 | parts: 3\n       |        ^",
		},
		"no mapping at all": {
			"- a\n",
			"f.yaml:1:1: expected a mapping, found a list\n     1 | - a\n       | ^",
		},
		"bad duration": {
			"timeout: soon\n",
			"f.yaml:1:10: time: invalid duration \"soon\"\n     1 | timeout: soon\n       |          ^",
		},
		"two documents": {
			"name: a\n---\nname: b\n",
			"f.yaml:3:5: a second YAML document; one file holds one document\n     3 | name: b\n       |     ^",
		},
		"nested too deep": {
			"name: " + strings.Repeat("[", 101),
			"f.yaml:1:107: nested deeper than 100 levels\n     1 | name: " + strings.Repeat("[", 101) + "\n       | " + strings.Repeat(" ", 106) + "^",
		},
		"lists in lists in one line": {
			strings.Repeat("- ", 101) + "a",
			"f.yaml:1:201: nested deeper than 100 levels\n     1 | " + strings.Repeat("- ", 101) + "a\n       | " + strings.Repeat(" ", 200) + "^",
		},
		"not yaml": {
			"name: \"a\n",
			"f.yaml:1:7: the text has no \" at its end\n     1 | name: \"a\n       |       ^",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var dst sample
			err := Decode("f.yaml", []byte(tc.src), &dst)
			require.EqualError(t, err, tc.want)
			var mistake *Error
			require.ErrorAs(t, err, &mistake)
			require.Equal(t, "f.yaml", mistake.File)
			require.Equal(t, strings.SplitN(tc.want, "\n", 2)[0], mistake.Brief())
		})
	}
}

func TestDecodeAcceptsWhatIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		want sample
	}{
		"empty":    {"", sample{Name: "kept"}},
		"comment":  {"# nothing here\n", sample{Name: "kept"}},
		"null":     {"~\n", sample{Name: "kept"}},
		"document": {"---\n", sample{Name: "kept"}},
		"all": {
			"name: a\ncount: 3\ntimeout: 10s\non: true\nparts: [{command: [x, y]}]\n",
			sample{Name: "a", Count: 3, Timeout: 10 * time.Second, On: true, Parts: []part{{[]string{"x", "y"}}}},
		},
		"byte order mark":  {"\ufeffname: a\r\ncount: 3\r\n", sample{Name: "a", Count: 3}},
		"mark alone":       {"\ufeff", sample{Name: "kept"}},
		"carriage returns": {"name: a\r\ncount: 3\r\n", sample{Name: "a", Count: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			dst := sample{Name: "kept"}
			require.NoError(t, Decode("f.yaml", []byte(tc.src), &dst))
			require.Equal(t, tc.want, dst)
		})
	}
}

// TestDecodeRefusesDepth: such documents take seconds in the library alone.
func TestDecodeRefusesDepth(t *testing.T) {
	for _, open := range []string{"[", "{a: ", "- ", "? ", "!!str ", "&a ", "[{a: "} {
		var dst any
		err := Decode("f.yaml", []byte(strings.Repeat(open, 20000)), &dst)
		require.ErrorContains(t, err, "nested deeper than 100 levels", open)
	}
	// Width is no depth.
	var dst struct{ A []string }
	require.NoError(t, Decode("f.yaml", []byte("a:\n"+strings.Repeat("  - x\n", 5000)), &dst))
	require.Len(t, dst.A, 5000)
	require.NoError(t, Decode("f.yaml", []byte("a: ["+strings.Repeat("!!str x, ", 5000)+"]"), &dst))
	require.Len(t, dst.A, 5000)
}

// TestDecodeRefusesBombs: a few lines that mean gigabytes, by many aliases or by
// a long text.
func TestDecodeRefusesBombs(t *testing.T) {
	bomb := func(first string, levels int) string {
		text := "parts:\n  - &a0 {k: " + first + "}\n"
		for i := range levels {
			alias := fmt.Sprintf("*a%d", i)
			text += fmt.Sprintf("  - &a%d {k: [%s]}\n", i+1, alias+strings.Repeat(", "+alias, 8))
		}
		return text
	}
	for name, src := range map[string]string{"deep": bomb("x", 12), "long": bomb(strings.Repeat("x", 1<<20), 3)} {
		t.Run(name, func(t *testing.T) {
			var dst struct {
				Parts []map[string]any `yaml:"parts"`
			}
			require.ErrorContains(t, Decode("f.yaml", []byte(src), &dst), "its aliases repeat more than 64 MiB")
		})
	}
	var dst struct {
		Parts []map[string]any `yaml:"parts"`
	}
	require.NoError(t, Decode("f.yaml", []byte(bomb("x", 3)), &dst))
	require.Len(t, dst.Parts[3]["k"], 9)
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		body bool
		err  string
	}{
		"nothing":   {"", false, ""},
		"comment":   {"# only\n", false, ""},
		"a mapping": {"a: 1\n", true, ""},
		"two":       {"a: 1\n---\nb: 2\n", false, "f.yaml:3:2: a second YAML document"},
		"broken":    {"a: [1\n", false, "f.yaml:1:4: "},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := Parse("f.yaml", []byte(tc.src))
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.body, body != nil)
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"name: a", "parts: [{command: x}]", "a: &b [*b]", "<<: {name: 1}", "? a\n: b", "\t", "- - -"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		var dst sample
		if err := Decode("f.yaml", src, &dst); err != nil {
			var mistake *Error
			require.ErrorAs(t, err, &mistake)
			require.NotEmpty(t, mistake.Message)
		}
	})
}

// TestSyntaxInPlainWords: the words of the YAML library reach no author of a file.
func TestSyntaxInPlainWords(t *testing.T) {
	for src, want := range map[string]string{
		"name: b: c\n":            "f.yaml:1:7: this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below",
		"name: a\n  count: 1\n":   "f.yaml:1:7: this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below",
		"name: 'it's'\n":          "f.yaml:1:11: there is more text behind the end of the value: put the whole value in one pair of quotes",
		"name: {a: 1}\n count: 2": "f.yaml:2:2: this line does not fit those above it: check its indentation",
		"parts:\n  - a\n  b: c\n": "f.yaml:3:3: this line does not fit those above it: check its indentation",
		"name: a\nother\n":        "f.yaml:2:1: expected a key with its value, such as key: value",
		"parts: [1,2\n":           "f.yaml:1:8: the list has no ] at its end, or a comma is missing",
		"name: {a: [x]\ncount: 1": "f.yaml:2:1: the mapping has no } at its end, or a comma is missing",
		"name: \"abc\n":           "f.yaml:1:7: the text has no \" at its end",
		"name: 'abc\n":            "f.yaml:1:7: the text has no ' at its end",
		"name: *x\n":              "f.yaml:1:8: there is no anchor of this name above: put text that begins with * in quotes",
		"name: @x\n":              "f.yaml:1:7: text cannot begin with '@': put it in quotes",
		"parts: - b\n":            "f.yaml:1:8: a list must begin on the line below its key",
		"name: \"x\\qy\"\n":       "f.yaml:1:10: the text in double quotes has an escape that YAML does not know: write \\\\ for a backslash, or use single quotes",
		"parts:\n\t- a\n":         "f.yaml:2:1: the line begins with a tab: YAML is indented with spaces",
	} {
		err := Decode("f.yaml", []byte(src), new(sample))
		var placed *Error
		require.ErrorAs(t, err, &placed, src)
		require.Equal(t, want, placed.Brief(), src)
	}
}
