package skeletons

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

// TestFiles makes every skeleton: nothing is left to fill in, YAML is YAML, and what
// every skeleton has is there.
func TestFiles(t *testing.T) {
	for _, language := range Languages {
		for _, store := range Stores {
			for _, pipeline := range Pipelines {
				name := strings.Join([]string{language, store, pipeline}, " ")
				files, err := Files(Choice{Language: language, Store: store, Pipeline: pipeline, Port: 8080})
				require.NoError(t, err, name)
				var names []string
				for _, file := range files {
					names = append(names, file.Name)
					requireWhole(t, name+": "+file.Name, file)
				}
				require.True(t, slices.IsSorted(names), name)
				require.Subset(t, names, []string{"README.md", "destkit.yaml", "hooks.yaml", "Dockerfile", ".gitignore", ".dockerignore"}, name)
				require.Equal(t, pipeline != "none", slices.Contains(names, pipelineFiles[pipeline]), name)
				require.False(t, slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".txt") && n != "requirements.txt" }), name)
			}
		}
	}
}

func requireWhole(t *testing.T, name string, file File) {
	t.Helper()
	require.NotEmpty(t, file.Content, name)
	require.NotContains(t, string(file.Content), "<<.", name)
	require.NotContains(t, string(file.Content), "<<-", name)
	require.True(t, strings.HasSuffix(string(file.Content), "\n"), name)
	if strings.HasSuffix(file.Name, ".yml") || strings.HasSuffix(file.Name, ".yaml") {
		var value map[string]any
		require.NoError(t, yaml.Unmarshal(file.Content, &value), name)
	}
}

func TestUnknownChoices(t *testing.T) {
	good := Choice{Language: Languages[0], Store: Stores[0], Pipeline: Pipelines[0], Port: 8080}
	for _, change := range []func(*Choice){
		func(c *Choice) { c.Language = "cobol" },
		func(c *Choice) { c.Store = "redis" },
		func(c *Choice) { c.Pipeline = "jenkins" },
	} {
		c := good
		change(&c)
		_, err := Files(c)
		require.ErrorContains(t, err, "choose ")
		_, err = CommandsOf(c)
		require.ErrorContains(t, err, "choose ")
	}
}

// TestPipelinesOfTheGuide: an endpoint that exists gets the pipelines of docs/ci.
func TestPipelinesOfTheGuide(t *testing.T) {
	for pipeline, page := range map[string]string{"github": "github-workflow.yml", "gitlab": "gitlab-ci.yml", "azure": "azure-pipelines.yml"} {
		want, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci", page))
		require.NoError(t, err)
		file, ok, err := Pipeline(pipeline)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, string(want), string(file.Content), "copy docs/ci/%s to internal/skeletons/common/existing/%s.yml", page, pipeline)
	}
	_, ok, err := Pipeline("none")
	require.NoError(t, err)
	require.False(t, ok)
}

// TestConfiguration: with the marks of its comments taken away the file is what it
// says, whatever the names of an endpoint are.
func TestConfiguration(t *testing.T) {
	odd := "a\": [\n# b\u0085write: true\u2028write: true\u2029write: true"
	endpoint := Endpoint{Objects: []Object{{
		Object:     rpc.Object{APIName: odd, Label: "Odd"},
		Operations: []string{"upsert"},
		Fields: []rpc.Field{
			{APIName: "id", Type: "integer", Identifier: true, Required: true},
			{APIName: odd, Type: "date"},
			{APIName: "kind", Type: "a\nwrite: true\u0085write: true", Required: true},
			{APIName: "tags", Type: "string", Array: true},
		},
	}}}
	file, err := endpoint.Configuration()
	require.NoError(t, err)
	var closed map[string]any
	require.NoError(t, yaml.Unmarshal(file.Content, &closed))
	require.Empty(t, closed, "nothing is permitted before its owner permits it")

	var open []string
	for line := range strings.SplitSeq(string(file.Content), "\n") {
		if text, ok := strings.CutPrefix(line, "# "); ok && strings.Contains(text, ":") && !strings.Contains(text, ", ") || strings.Contains(line, "object: ") || strings.Contains(line, "tags") {
			open = append(open, strings.TrimPrefix(text, "# "))
		}
	}
	var opened struct {
		Write    bool                      `yaml:"write"`
		Object   []string                  `yaml:"object"`
		Fixtures map[string]map[string]any `yaml:"fixtures"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Join(open, "\n")), &opened), strings.Join(open, "\n"))
	require.True(t, opened.Write)
	require.Equal(t, []string{odd}, opened.Object)
	require.Equal(t, map[string]any{
		odd: "2021-03-29", "tags": []any{"text {n}"}, "bad": map[string]any{odd: "2023-02-30"},
	}, opened.Fixtures[odd])
}

// TestGoModules: a module that a skeleton and destkit both need has one version. Then
// updates reach both, and whoever builds both compiles it once: SQLite takes minutes.
func TestGoModules(t *testing.T) {
	ours := goModules(t, filepath.Join("..", "..", "go.mod"))
	for _, store := range []string{"sqlite", "postgres"} {
		theirs := goModules(t, filepath.Join("go", store, "go.mod.txt"))
		require.NotEmpty(t, theirs)
		for module, version := range theirs {
			if own, both := ours[module]; both {
				require.Equal(t, own, version, "%s of go/%s/go.mod.txt: run go get %s@%s and go mod tidy in a skeleton, and copy go.mod and go.sum", module, store, module, own)
			}
		}
	}
}

// goModules are the versions in a go.mod.
func goModules(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	versions := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(words) > 1 && strings.Contains(words[0], ".") && strings.HasPrefix(words[1], "v") {
			versions[words[0]] = words[1]
		}
	}
	return versions
}
