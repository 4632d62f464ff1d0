package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// The published schemas come as files of Go modules that others release, fetched
// and checked as every module is: nothing of them is compiled, and nothing is in
// go.mod.
const (
	composeModule    = "github.com/compose-spec/compose-go/v2@v2.16.2"
	kubernetesModule = "sigs.k8s.io/kubectl-validate@v0.0.4"
)

// moduleFolder is where a module's files are. Without the network the test is
// skipped; in a pipeline it fails.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // no module: ours stays as it is
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if errors.Join(err, json.Unmarshal(out, &found)) != nil || found.Dir == "" {
		matrixtest.Missing(t, "modules", "%s cannot be fetched, so its schemas are not there: %v %s", module, err, found.Error)
	}
	return found.Dir
}

// schemaOf reads a document that has schemas in it.
func schemaOf(t *testing.T, file string) any {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	document, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	return document
}

// TestComposeFileIsValid holds the file against the schema of the Compose
// specification.
func TestComposeFileIsValid(t *testing.T) {
	folder := moduleFolder(t, composeModule)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("compose.json", schemaOf(t, filepath.Join(folder, "schema", "compose-spec.json"))))
	schema, err := compiler.Compile("compose.json")
	require.NoError(t, err)
	file := documents(t, "compose.yaml")[0]
	require.NoError(t, schema.Validate(any(file)))
	// The schema is one that refuses.
	under[tree](t, file, "services", "service")["healthchek"] = tree{}
	require.ErrorContains(t, schema.Validate(any(file)), "healthchek")
}

// strict makes schemas refuse members that they do not know, as kubectl does.
func strict(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, open := node["additionalProperties"]; node["properties"] != nil && !open {
			node["additionalProperties"] = false
		}
		for _, below := range node {
			strict(below)
		}
	case []any:
		for _, below := range node {
			strict(below)
		}
	}
}

// TestLoadManifestIsValid holds the load by the k6 operator against the structure that
// the operator publishes, with the parts of a pod as Kubernetes publishes them.
func TestLoadManifestIsValid(t *testing.T) {
	builtins := filepath.Join(moduleFolder(t, kubernetesModule), "pkg", "openapiclient", "builtins")
	versions, err := filepath.Glob(filepath.Join(builtins, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	pods := schemaOf(t, filepath.Join(versions[len(versions)-1], "api", "v1.json"))
	strict(under[tree](t, pods, "components", "schemas"))
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("k8s.json", pods))
	require.NoError(t, compiler.AddResource("testrun.json", schemaOf(t, filepath.Join("testdata", "k6-testrun.schema.json"))))
	schema, err := compiler.Compile("testrun.json")
	require.NoError(t, err)
	run := documents(t, "k6", "testrun.yaml")[0]
	require.NoError(t, schema.Validate(any(run)))
	// The schema is one that refuses, also deep below.
	for wrong, path := range map[string][]any{
		"surname":        {"metadata"},
		"paralelism":     {"spec"},
		"imagePulPolicy": {"spec", "runner"},
		"secretReff":     {"spec", "runner", "envFrom", 0},
		"limit":          {"spec", "runner", "resources"},
	} {
		under[tree](t, run, path...)[wrong] = tree{}
		require.ErrorContains(t, schema.Validate(any(run)), wrong)
		delete(under[tree](t, run, path...), wrong)
	}
}
