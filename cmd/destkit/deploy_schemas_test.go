package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// The published schemas come as files of Go modules that others release: nothing of
// them is compiled, and nothing stands in go.mod. .ci/run fetches them.
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
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s cannot be fetched: %v %s", module, err, found.Error)
		}
		t.Skipf("%s cannot be fetched, so its schemas are not there: %v %s", module, err, found.Error)
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
	under[tree](t, file, "services", "api")["healthchek"] = tree{}
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

// kubernetesSchemas are the schemas of all kinds by apiVersion and kind, for the
// newest version that the module has.
func kubernetesSchemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	versions, err := filepath.Glob(filepath.Join(moduleFolder(t, kubernetesModule), "pkg", "openapiclient", "builtins", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	newest := versions[len(versions)-1]
	schemas := map[string]*jsonschema.Schema{}
	err = filepath.WalkDir(newest, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".json" {
			return err
		}
		addKinds(t, schemas, file)
		return nil
	})
	require.NoError(t, err)
	return schemas
}

func addKinds(t *testing.T, schemas map[string]*jsonschema.Schema, file string) {
	t.Helper()
	document, ok := schemaOf(t, file).(map[string]any)
	require.True(t, ok, file)
	components, _ := document["components"].(map[string]any)
	all, _ := components["schemas"].(map[string]any)
	strict(all)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("k8s.json", document))
	for name, schema := range all {
		kinds, _ := schema.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			version := strings.TrimPrefix(under[string](t, k, "group")+"/"+under[string](t, k, "version"), "/")
			compiled, err := compiler.Compile("k8s.json#/components/schemas/" + name)
			require.NoError(t, err)
			schemas[version+" "+under[string](t, k, "kind")] = compiled
		}
	}
}

// TestManifestsAreValid holds the manifests against the schemas that Kubernetes
// publishes.
func TestManifestsAreValid(t *testing.T) {
	schemas := kubernetesSchemas(t)
	for name, m := range manifests(t) {
		kind := under[string](t, m, "apiVersion") + " " + under[string](t, m, "kind")
		require.Contains(t, schemas, kind)
		require.NoError(t, schemas[kind].Validate(any(m)), name)
		// The schema is one that refuses.
		if containers, ok := m["spec"].(tree)["template"]; ok {
			under[tree](t, containers, "spec", "containers", 0)["imagePulPolicy"] = "Always"
			require.ErrorContains(t, schemas[kind].Validate(any(m)), "imagePulPolicy", name)
		}
	}
}
