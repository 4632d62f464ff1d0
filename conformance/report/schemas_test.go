package report

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
)

// published returns the path of a published schema, which stands beside the
// repository. Without it the test is skipped, in CI it fails.
func published(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "schemas", name)
	if _, err := os.Stat(path); err != nil {
		missing(t, "the published schema "+name+" is not there: "+err.Error())
	}
	return path
}

func missing(t *testing.T, message string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}

func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("mem:///schema.json", doc))
	out, err := compiler.Compile("mem:///schema.json")
	require.NoError(t, err)
	return out
}

func validate(t *testing.T, s *jsonschema.Schema, b []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	require.NoError(t, s.Validate(v))
}

// render writes a report, which must succeed.
func render(t *testing.T, format string, r *c.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(format, &b, r))
	return b.Bytes()
}

// reports are all shapes that a format must hold.
func reports() map[string]*c.Report {
	unreachable := &c.Report{SchemaVersion: c.SchemaVersion, Started: started, Profile: c.ProfileV1, Tier: c.TierProtocol,
		Verdict: c.Unknown, ExitStatus: 3, Summary: "unknown: no answer", Target: "$DESTKIT_URL",
		Problems: []c.Problem{{Kind: "unreachable", ExitStatus: 3, Message: "connection refused"}}}
	return map[string]*c.Report{"sample": sample(), "conformant": conformant(), "poisoned": poisoned(hostile), "unreachable": unreachable}
}

func TestJSONMatchesItsSchema(t *testing.T) {
	s := compile(t, Schema())
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) { validate(t, s, render(t, JSON, r)) })
	}
	t.Run("the schema can fail", func(t *testing.T) {
		for _, change := range []func(*c.Report){
			func(r *c.Report) { r.SchemaVersion = "0" },
			func(r *c.Report) { r.Verdict = "fine" },
			func(r *c.Report) { r.Checks[0].Status = "OK" },
			func(r *c.Report) { r.ExitStatus = 7 },
			func(r *c.Report) { r.Counts["OK"] = 1 },
		} {
			r := sample()
			change(r)
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(render(t, JSON, r)))
			require.NoError(t, err)
			require.Error(t, s.Validate(v))
		}
	})
}

// TestSchemaHasEveryMember holds the schema and the types together: both sides
// have the same members, and exactly those with omitempty are optional.
func TestSchemaHasEveryMember(t *testing.T) {
	var doc struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &doc))
	defs := map[string]reflect.Type{
		"tool": reflect.TypeFor[c.Tool](), "problem": reflect.TypeFor[c.Problem](), "settings": reflect.TypeFor[c.Settings](),
		"check": reflect.TypeFor[c.CheckResult](), "finding": reflect.TypeFor[c.Finding](), "residue": reflect.TypeFor[c.Residue](),
		"leftover": reflect.TypeFor[c.Leftover](), "waiver": reflect.TypeFor[c.Waiver](), "exchange": reflect.TypeFor[c.Exchange](),
		"request": reflect.TypeFor[wire.Message](), "response": reflect.TypeFor[wire.Response](),
		"header": reflect.TypeFor[wire.Header](), "body": reflect.TypeFor[wire.Body](),
	}
	for name, typ := range defs {
		t.Run(name, func(t *testing.T) { requireMembers(t, doc.Defs[name], typ) })
	}
	t.Run("report", func(t *testing.T) { requireMembers(t, doc.object, reflect.TypeFor[c.Report]()) })
	require.Len(t, doc.Defs, len(defs)+1, "status is the only definition without a type")
}

type object struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
}

func requireMembers(t *testing.T, o object, typ reflect.Type) {
	t.Helper()
	var all, required, have []string
	for i := range typ.NumField() {
		name, opts, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		all = append(all, name)
		if opts != "omitempty" {
			required = append(required, name)
		}
	}
	for name := range o.Properties {
		have = append(have, name)
	}
	sort.Strings(have)
	sort.Strings(all)
	require.Equal(t, all, have)
	require.ElementsMatch(t, required, o.Required)
}

func TestSARIFMatchesThePublishedSchema(t *testing.T) {
	b, err := os.ReadFile(published(t, "sarif-2.1.0.schema.json"))
	require.NoError(t, err)
	s := compile(t, b)
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) { validate(t, s, render(t, SARIF, r)) })
	}
}

func TestJUnitMatchesThePublishedSchema(t *testing.T) {
	xsd := published(t, "junit.xsd")
	tool, err := exec.LookPath("xmllint")
	if err != nil {
		missing(t, "xmllint is not installed (package libxml2-utils)")
	}
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "junit.xml")
			require.NoError(t, WriteFile(JUnit, file, r))
			out, err := exec.Command(tool, "--nonet", "--noout", "--schema", xsd, file).CombinedOutput()
			require.NoError(t, err, string(out))
		})
	}
}
