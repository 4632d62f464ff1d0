package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// The published schemas come as files of Go modules that others release, fetched
// and checked as every module is: nothing of them is compiled, and nothing stands
// in go.mod.
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

// kubernetesSchema is the schema of a kind, of the newest version of Kubernetes that
// the module has.
func kubernetesSchema(t *testing.T, folder, version, kind string) *jsonschema.Schema {
	t.Helper()
	versions, err := filepath.Glob(filepath.Join(folder, "pkg", "openapiclient", "builtins", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	group := "api"
	if strings.Contains(version, "/") {
		group = "apis"
	}
	document := schemaOf(t, filepath.Join(versions[len(versions)-1], group, version+".json"))
	strict(under[tree](t, document, "components", "schemas"))
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("k8s.json", document))
	for name, schema := range under[tree](t, document, "components", "schemas") {
		kinds, _ := schema.(tree)["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) == 1 && under[string](t, kinds, 0, "kind") == kind {
			compiled, err := compiler.Compile("k8s.json#/components/schemas/" + name)
			require.NoError(t, err)
			return compiled
		}
	}
	require.FailNow(t, "no such kind", "%s %s", version, kind)
	return nil
}

// TestManifestsAreValid holds the manifests against the schemas that Kubernetes
// publishes.
func TestManifestsAreValid(t *testing.T) {
	folder := moduleFolder(t, kubernetesModule)
	for name, m := range manifests(t) {
		schema := kubernetesSchema(t, folder, under[string](t, m, "apiVersion"), under[string](t, m, "kind"))
		require.NoError(t, schema.Validate(any(m)), name)
		// The schema is one that refuses, also deep below.
		under[tree](t, m, "metadata")["surname"] = "x"
		require.ErrorContains(t, schema.Validate(any(m)), "surname", name)
		delete(under[tree](t, m, "metadata"), "surname")
		if strings.HasPrefix(name, "Deployment/") {
			under[tree](t, m, "spec", "template", "spec", "containers", 0)["imagePulPolicy"] = "Always"
			require.ErrorContains(t, schema.Validate(any(m)), "imagePulPolicy", name)
		}
	}
}
