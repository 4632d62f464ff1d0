package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/yamldoc"
	"github.com/destkit/destkit/openapi"
)

const (
	settingsFile = "settings.yaml"
	settingsPage = "../docs/evidence/settings.md"
)

// settingRow is one setting: what it does, and the test that sees it, or the check of the
// service suite that does.
type settingRow struct {
	Key     string `yaml:"key"`
	Default string `yaml:"default"`
	Effect  string `yaml:"effect"`
	Test    string `yaml:"test"`
}

type settingsDocument struct {
	Settings []struct {
		Resource string       `yaml:"resource"`
		Rows     []settingRow `yaml:"rows"`
	} `yaml:"settings"`
}

// settingResources names the resource of each schema of a request body, without what
// its name ends with.
var settingResources = map[string]string{
	"Destination": "destination", "Sync": "sync", "SyncTrigger": "trigger of a sync", "Source": "source", "Model": "model",
	"Topic": "topic", "Dataset": "dataset", "Webhook": "webhook", "Invitation": "invitation", "Workspace": "workspace",
	"WorkspaceInvitation": "invitation to a workspace", "FilterSegment": "segment", "Link": "link", "ConnectLink": "link to a new connection",
}

// requestKeys walks the request bodies of the OpenAPI document: by resource, the path
// of every key with its default. What a reply shows and a request ignores as a whole
// (ReadOnly) is no setting.
func requestKeys(t *testing.T) map[string]map[string]string {
	t.Helper()
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(openapi.RESTJSON(), &document))
	named := func(schema map[string]any) (string, map[string]any) {
		ref, _ := schema["$ref"].(string)
		name := ref[strings.LastIndex(ref, "/")+1:]
		if name == "" {
			return "", schema
		}
		return name, document.Components.Schemas[name]
	}
	var walk func(schema map[string]any, at string, into map[string]string, within []string)
	walk = func(schema map[string]any, at string, into map[string]string, within []string) {
		name, schema := named(schema)
		if slices.Contains(within, name) && name != "" {
			return
		}
		within = append(slices.Clone(within), name)
		for _, kind := range []string{"allOf", "oneOf", "anyOf"} {
			list, _ := schema[kind].([]any)
			for _, one := range list {
				walk(one.(map[string]any), at, into, within)
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, value := range properties {
			property := value.(map[string]any)
			kind, described := named(property)
			if kind == "ReadOnly" {
				continue
			}
			place := strings.TrimPrefix(at+"."+key, ".")
			into[place] = ""
			if initial, has := described["default"]; has {
				into[place] = fmt.Sprint(initial)
			}
			walk(property, place, into, within)
		}
		if items, is := schema["items"].(map[string]any); is {
			walk(items, at+"[]", into, within)
		}
	}
	found := map[string]map[string]string{}
	for path, operations := range document.Paths {
		for method, text := range operations {
			var operation struct {
				RequestBody struct {
					Content map[string]struct{ Schema map[string]any }
				}
			}
			if method == "parameters" || json.Unmarshal(text, &operation) != nil || operation.RequestBody.Content == nil {
				continue
			}
			for _, content := range operation.RequestBody.Content {
				name, _ := named(content.Schema)
				for _, end := range []string{"Create", "Update", "Write"} {
					name = strings.TrimSuffix(name, end)
				}
				resource := settingResources[name]
				require.NotEmpty(t, resource, "%s %s: add the schema %s to settingResources", method, path, name)
				if found[resource] == nil {
					found[resource] = map[string]string{}
				}
				walk(content.Schema, "", found[resource], nil)
			}
		}
	}
	return found
}

// TestSettings holds settings.yaml, the OpenAPI document, the tests and the page
// together: no setting is taken whose effect is not said, and no test is named
// that is not there.
func TestSettings(t *testing.T) {
	text := contentOf(t, settingsFile)
	var document settingsDocument
	require.NoError(t, yamldoc.Decode(settingsFile, text, &document))
	keys, tests, judged := requestKeys(t), map[string]map[string]bool{}, judgedChecks(t)
	var page bytes.Buffer
	page.WriteString(`# Settings

Every key of the request bodies of the REST API, its effect, and what observes it: a test,
or a check of the [service suite](service-kill-matrix.md). Keys that only responses have are not listed: a request can send them back, and the
service ignores them. The page about
[settings](../settings.md) says what the most important ones are for. This page is generated.
`)
	for _, part := range document.Settings {
		require.Contains(t, keys, part.Resource, "no request has this resource")
		fmt.Fprintf(&page, "\n## %s%s\n\n| key | default | effect | test |\n|---|---|---|---|\n", strings.ToUpper(part.Resource[:1]), part.Resource[1:])
		for _, row := range part.Rows {
			initial, known := keys[part.Resource][row.Key]
			require.True(t, known, "%s: no request has %s, or it is listed twice", part.Resource, row.Key)
			require.True(t, initial == "" || row.Default == "", "%s: the document has the default of %s", part.Resource, row.Key)
			delete(keys[part.Resource], row.Key)
			require.NotEmpty(t, row.Effect, "%s: %s", part.Resource, row.Key)
			folder, name, elsewhere := strings.Cut(row.Test, ".")
			switch {
			case !elsewhere:
				folder, name = ".", row.Test
			case folder == "runs":
				folder = filepath.Join("internal", folder)
			default:
				folder = filepath.Join("internal", "sync", folder)
			}
			if tests[folder] == nil {
				tests[folder], _ = testsIn(t, folder)
			}
			require.True(t, judged[name] || tests[folder][name], "%s: there is no test %s for %s", part.Resource, row.Test, row.Key)
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", row.Key, strings.ReplaceAll(initial+row.Default, "|", `\|`), strings.ReplaceAll(row.Effect, "|", `\|`), row.Test)
		}
	}
	for resource, left := range keys {
		require.Empty(t, slices.Sorted(maps.Keys(left)), "keys of the resource %s without a row in %s", resource, settingsFile)
	}
	if *updateLedger {
		require.NoError(t, os.WriteFile(settingsPage, page.Bytes(), 0o644))
	}
	kept := contentOf(t, settingsPage)
	require.Equal(t, page.String(), string(kept), "run go test ./server -run TestSettings$ -update")
}
