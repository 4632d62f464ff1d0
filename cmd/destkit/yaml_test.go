package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type yamlSample struct {
	Name    string        `yaml:"name"`
	Count   int           `yaml:"count"`
	Timeout time.Duration `yaml:"timeout"`
	On      bool          `yaml:"on"`
	Parts   []yamlPart    `yaml:"parts"`
	Hidden  string        `yaml:"-"`
}

type yamlPart struct {
	Command []string `yaml:"command"`
}

func TestDecodeYAMLPointsAtTheMistake(t *testing.T) {
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
		"key twice": {
			"name: a\nname: b\n",
			"f.yaml:2:1: mapping key \"name\" already defined at [1:1]\n     2 | name: b\n       | ^",
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
		"not yaml": {
			"name: \"a\n",
			"f.yaml:1:7: could not find end character of double-quoted text\n     1 | name: \"a\n       |       ^",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var dst yamlSample
			err := decodeYAML("f.yaml", []byte(tc.src), &dst)
			require.EqualError(t, err, tc.want)
			var exit *exitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, statusUsage, exit.status)
		})
	}
}

func TestDecodeYAMLAcceptsWhatIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		src  string
		want yamlSample
	}{
		"empty":    {"", yamlSample{Name: "kept"}},
		"comment":  {"# nothing here\n", yamlSample{Name: "kept"}},
		"null":     {"~\n", yamlSample{Name: "kept"}},
		"document": {"---\n", yamlSample{Name: "kept"}},
		"all": {
			"name: a\ncount: 3\ntimeout: 10s\non: true\nparts: [{command: [x, y]}]\n",
			yamlSample{Name: "a", Count: 3, Timeout: 10 * time.Second, On: true, Parts: []yamlPart{{[]string{"x", "y"}}}},
		},
		"carriage returns": {"name: a\r\ncount: 3\r\n", yamlSample{Name: "a", Count: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			dst := yamlSample{Name: "kept"}
			require.NoError(t, decodeYAML("f.yaml", []byte(tc.src), &dst))
			require.Equal(t, tc.want, dst)
		})
	}
}

func FuzzDecodeYAML(f *testing.F) {
	for _, seed := range []string{"name: a", "parts: [{command: x}]", "a: &b [*b]", "<<: {name: 1}", "? a\n: b", "\t", "- - -"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, src []byte) {
		var dst yamlSample
		_ = decodeYAML("f.yaml", src, &dst)
	})
}
