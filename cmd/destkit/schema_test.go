package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/skeletons"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/loadgen"
	"github.com/destkit/destkit/server"
)

// madeSchemas are the schemas as the types and flags have them now.
func madeSchemas(t *testing.T) map[string]string {
	t.Helper()
	strict, open := newSchemaMaker(t, true), newSchemaMaker(t, false)
	documents := server.Documents()
	return map[string]string{
		"config":         writeSchema(t, "config", "Configuration of destkit conform (destkit.yaml)", configSchema(newConform(), true)),
		"config-service": writeSchema(t, "config-service", "Configuration of destkit conform service", configSchema(newConformService(), false)),
		"destsim":        writeSchema(t, "destsim", "Configuration of destkit destsim", strict.of(reflect.TypeFor[destsim.Config]())),
		"seed":           writeSchema(t, "seed", "Seed of destkit serve", strict.of(documents["seed"])),
		"connector":      writeSchema(t, "connector", "Emulated type of destkit serve", strict.of(documents["connector"])),
		"waivers":        writeSchema(t, "waivers", "Accepted failures of destkit conform", strict.of(reflect.TypeFor[configfile.WaiverFile]())),
		"hooks":          writeSchema(t, "hooks", "Hooks of destkit conform", strict.of(reflect.TypeFor[conformance.Hooks]())),
		"report":         string(report.Schema()),
		"load-report":    writeSchema(t, "load-report", "Report of destkit load", open.of(reflect.TypeFor[loadgen.Result]())),
	}
}

// TestSchemas keeps the folder schemas; -update writes them.
func TestSchemas(t *testing.T) {
	made := madeSchemas(t)
	for name, text := range made {
		requirePage(t, "../cmd/destkit/schemas/"+name+".json", text)
	}
	files, err := filepath.Glob(filepath.Join("schemas", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(made), "a schema that is no more")
}

func compiledSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := schemas.ReadFile("schemas/" + name + ".json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:///"+name, document))
	schema, err := c.Compile("mem:///" + name)
	require.NoError(t, err)
	return schema
}

// yamlValue is a YAML document as JSON has it.
func yamlValue(t *testing.T, name, text string) any {
	t.Helper()
	var value any
	require.NoError(t, yamldoc.Decode(name, []byte(text), &value), text)
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	require.NoError(t, err)
	return out
}

// schemaLine is the line by which an editor finds the schema of a file.
var schemaLine = regexp.MustCompile(`(?m)^# yaml-language-server: \$schema=` + regexp.QuoteMeta(strings.TrimSuffix(schemaURL(""), ".json")) + `([a-z-]+)\.json$`)

// sample is one file, or one example on a page.
type sample struct{ schema, place, text string }

// samples are all files in the repository that have a schema: by the line in them, in
// transcripts by their names, and the catalogues.
func samples(t *testing.T) []sample {
	t.Helper()
	var all []sample
	take := func(pattern string, each func(file, text string)) {
		files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			each(file, string(text))
		}
	}
	pages := func(file, text string) {
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			if line := schemaLine.FindStringSubmatch(m[1]); line != nil {
				all = append(all, sample{line[1], file, m[1]})
			} else if !strings.Contains(m[1], "uses: ") && !strings.Contains(m[1], "repos: ") && !strings.Contains(m[1], "permissions: ") && !strings.Contains(m[1], "scrape_configs:") {
				t.Errorf("%s: an example without the line that names its schema:\n%s", file, m[1])
			}
		}
	}
	take("docs/*.md", pages)
	take("server/internal/sync/destination/catalogue/*.yaml", func(file, text string) {
		all = append(all, sample{"connector", file, nested("destination", text)})
	})
	take("internal/source/catalogue/*.yaml", func(file, text string) {
		all = append(all, sample{"connector", file, nested("source", text)})
	})
	take("server/testdata/seed.yaml", func(file, text string) { all = append(all, sample{"seed", file, text}) })
	take("cmd/destkit/testdata/*/*.txtar", func(file, text string) {
		for name, content := range archived(text) {
			if schema, known := archivedSchemas[filepath.Base(file)+" "+name]; known {
				all = append(all, sample{schema, file + " " + name, content})
			}
		}
	})
	return append(all, writtenSamples(t)...)
}

// writtenSamples are what the program writes for its users.
func writtenSamples(t *testing.T) []sample {
	t.Helper()
	files, err := skeletons.Files(skeletons.Choice{
		Language: skeletons.Languages[0], Store: skeletons.Stores[0], Pipeline: skeletons.Pipelines[0], Port: 8080,
	})
	require.NoError(t, err)
	hooks, err := skeletons.Hooks()
	require.NoError(t, err)
	existing, err := skeletons.Endpoint{TokenEnv: "TOKEN"}.Configuration()
	require.NoError(t, err)
	files = append(files, hooks, existing, skeletons.File{Name: "hooks.yaml", Content: destsim.Config{ControlToken: "token"}.HooksFile("http://127.0.0.1:1")})
	var all []sample
	for _, f := range files {
		if f.Name != "destkit.yaml" && f.Name != "hooks.yaml" {
			continue
		}
		line := schemaLine.FindSubmatch(f.Content)
		require.NotNil(t, line, "%s does not name its schema:\n%s", f.Name, f.Content)
		all = append(all, sample{string(line[1]), "written " + f.Name, string(f.Content)})
	}
	require.Len(t, all, 5)
	return all
}

// archivedSchemas are the files of transcripts that a command accepts.
var archivedSchemas = map[string]string{
	"destsim.txtar sim.yaml":      "destsim",
	"exit-4.txtar known.yaml":     "waivers",
	"exit-5.txtar keep.yaml":      "destsim",
	"permissions.txtar seed.yaml": "seed",
	"secrets.txtar sim.yaml":      "destsim",
}

// archived are the files of a transcript.
func archived(text string) map[string]string {
	files := map[string]string{}
	parts := regexp.MustCompile(`(?m)^-- (\S+) --\n`).Split(text, -1)
	for i, m := range regexp.MustCompile(`(?m)^-- (\S+) --\n`).FindAllStringSubmatch(text, -1) {
		files[m[1]] = parts[i+1]
	}
	return files
}

// nested puts a document under a key.
func nested(key, text string) string {
	return key + ":\n  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}

// TestSamplesHaveTheirSchema holds every example against its schema and its reader.
// Then an unknown key is added to each mapping in it, one after the other: the
// reader and the schema refuse the same ones.
func TestSamplesHaveTheirSchema(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, s := range samples(t) {
		schema := compiledSchema(t, s.schema)
		value := yamlValue(t, s.place, s.text)
		require.NoError(t, schema.Validate(value), s.place)
		seen[s.schema]++
		read := func() error {
			file := filepath.Join(t.TempDir(), "file.yaml")
			text, err := json.Marshal(value)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			return readers[s.schema](file)
		}
		require.NoError(t, read(), s.place)
		refused := 0
		eachMapping(value, func(mapping map[string]any) {
			mapping["no_such_key"] = "x"
			bySchema, byReader := schema.Validate(value) != nil, read() != nil
			require.Equal(t, byReader, bySchema, "%s: reader %v, schema %v, with a key added to %v", s.place, byReader, bySchema, mapping)
			if byReader {
				refused++
			}
			delete(mapping, "no_such_key")
		})
		require.Positive(t, refused, s.place)
	}
	for name := range readers {
		require.Positive(t, seen[name], "no example has the schema %s", name)
	}
}

// eachMapping visits every mapping of a value; of a long list the first two items.
func eachMapping(value any, visit func(map[string]any)) {
	switch v := value.(type) {
	case []any:
		for _, item := range v[:min(2, len(v))] {
			eachMapping(item, visit)
		}
	case map[string]any:
		visit(v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachMapping(v[key], visit)
		}
	}
}

// TestSchemasRefuse: each schema refuses a mistake that its reader refuses, too.
func TestSchemasRefuse(t *testing.T) {
	for name, text := range map[string]string{
		"config":         "wirte: true",
		"config-service": "profile: strictest",
		"destsim":        "objects: [{name: note, fields: [{name: id, type: string, identifyer: true}]}]",
		"seed":           "organizations: [{name: Acme, workspace: []}]",
		"connector":      "destination: {service_name: acme, objects: [{name: contact}]}",
		"waivers":        "waivers: [{check: RES-002, because: later}]",
		"hooks":          "restart: {comand: [./restart.sh]}",
		"report":         "verdict: fine",
		"load-report":    "requests: many",
	} {
		require.Error(t, compiledSchema(t, name).Validate(yamlValue(t, name, text)), name)
		if read, ok := readers[name]; ok && name != "config-service" {
			file := testkit.WriteFile(t, "file.yaml", "{"+text+"}")
			require.Error(t, read(file), name)
		}
	}
}

// TestReportsHaveTheirSchema: the output of the judge and of a load matches the schemas.
func TestReportsHaveTheirSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "conformance", "report", "testdata", "sample.json"))
	require.NoError(t, err)
	judged, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compiledSchema(t, "report").Validate(judged))

	endpoint := httptest.NewServer(exampleSim(t))
	t.Cleanup(endpoint.Close)
	result, err := loadgen.Run(context.Background(), loadgen.Options{
		Target: loadgen.Target{URL: endpoint.URL}, Write: true, Closed: true, Connections: 1, Count: 3,
		Work: loadgen.Work{Objects: []loadgen.Share{{Name: "restaurant"}}, BatchSize: 2},
	})
	require.NoError(t, err)
	for _, r := range []*loadgen.Result{result, {}} {
		var written bytes.Buffer
		require.NoError(t, json.NewEncoder(&written).Encode(r))
		loaded, err := jsonschema.UnmarshalJSON(&written)
		require.NoError(t, err)
		require.NoError(t, compiledSchema(t, "load-report").Validate(loaded))
	}
}
