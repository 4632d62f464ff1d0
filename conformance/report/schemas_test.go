package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
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
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/matrixtest"
)

// published returns the path of a published schema, which is next to the repository. Without it the
// test is skipped, in CI it fails.
func published(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "schemas", name)
	if _, err := os.Stat(path); err != nil {
		matrixtest.Missing(t, "schemas", "the published schema %s is not there: %v", name, err)
	}
	return path
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
	require.NoError(t, Options{}.Write(format, &b, r))
	return b.Bytes()
}

// reports are all shapes that a format must hold.
func reports() map[string]*c.Report {
	unreachable := &c.Report{SchemaVersion: c.SchemaVersion, Started: started, Profile: c.ProfileV1, Tier: c.TierProtocol,
		Verdict: c.Unknown, ExitStatus: 3, Summary: "unknown: no answer", Target: "$DESTKIT_URL",
		Problems: []c.Problem{{Kind: "unreachable", ExitStatus: 3, Message: "connection refused"}}}
	all := map[string]*c.Report{"sample": sample(), "conformant": conformant(), "poisoned": poisoned(hostile), "unreachable": unreachable,
		"replicas": replicated(), "empty": empty(), "own": ownOnly(), "waivers": waived(), "suite of a hostile name": sample()}
	all["suite of a hostile name"].Suite = strings.ToValidUTF8(hostile, "?")
	for _, suite := range []string{"destination", "service"} {
		for _, status := range statusOrder {
			all[suite+" "+string(status)] = single(suite, status)
		}
	}
	return all
}

// odd adds the report of a caller who filled in nothing, which is no JSON report
// but must still give a file that others can read.
func odd() map[string]*c.Report {
	all := reports()
	all["zero"] = &c.Report{}
	return all
}

// empty is a run that ended before its first check.
func empty() *c.Report {
	r := conformant()
	r.Checks, r.Counts, r.Musts, r.Verdict, r.ExitStatus = nil, nil, 0, c.Unknown, 3
	return r
}

// single is a run of one check, with and without findings, and an own check of
// the same status.
func single(suite string, status c.Status) *c.Report {
	r := conformant()
	r.Suite = suite
	bare, full := check("SVC-001", "lists have their envelope", "Envelopes", c.Must, status), sample().Checks[3]
	full.Status, full.Gating = status, status != c.Warn
	if status == c.Waived {
		full.Waiver = &c.Waiver{Check: full.ID, Reason: "known"}
	}
	r.Checks = []c.CheckResult{bare, full}
	own := full
	own.ID = "MY-001"
	r.Own = []c.CheckResult{own}
	r.Counts = map[c.Status]int{status: 2}
	return r
}

// ownOnly is a run in which nothing but the author's own checks was selected.
func ownOnly() *c.Report {
	r := single("destination", c.Fail)
	r.Checks = nil
	return r
}

// waived has waivers with all of their fields, with few, and one that is stale.
func waived() *c.Report {
	r := single("service", c.Waived)
	r.Checks[0].Waiver = &c.Waiver{Check: "SVC-001", Object: "contact", Operation: "upsert", Reason: "known", Owner: "us", Until: "2027-01-31", Issue: "https://x.example/1?a=b&c=<d>"}
	r.Problems = []c.Problem{{Kind: "waiver", ExitStatus: 4, Message: "the waiver of RES-003 covers nothing", Fix: "remove it"}}
	r.ExitStatus = 4
	return r
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
		if name == "-" || !typ.Field(i).IsExported() {
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
	for name, r := range odd() {
		t.Run(name, func(t *testing.T) { validate(t, s, render(t, SARIF, r)) })
	}
	t.Run("the schema can fail", func(t *testing.T) {
		bad := strings.Replace(string(render(t, SARIF, sample())), `"ruleId"`, `"rule"`, 1)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(bad, `"level": "error"`, `"level": "fatal"`, 1)))
		require.NoError(t, err)
		require.Error(t, s.Validate(v))
	})
}

func TestJUnitMatchesThePublishedSchema(t *testing.T) {
	xsd := published(t, "junit.xsd")
	tool, err := exec.LookPath("xmllint")
	if err != nil {
		matrixtest.Missing(t, "xmllint", "xmllint is not installed (package libxml2-utils)")
	}
	// One call for all files: it names each that does not match.
	dir := t.TempDir()
	args := []string{"--nonet", "--noout", "--schema", xsd}
	for name, r := range odd() {
		file := filepath.Join(dir, slug(name)+".xml")
		require.NoError(t, Options{}.WriteFile(JUnit, file, r))
		args = append(args, file)
	}
	out, err := exec.Command(tool, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, len(odd()), strings.Count(string(out), " validates\n"), string(out))

	t.Run("the schema can fail", func(t *testing.T) {
		bad := filepath.Join(dir, "bad.xml")
		good := string(render(t, JUnit, sample()))
		require.NoError(t, os.WriteFile(bad, []byte(strings.Replace(good, ` hostname=`, ` host=`, 1)), 0o600))
		require.Error(t, exec.Command(tool, "--nonet", "--noout", "--schema", xsd, bad).Run())
	})
}

// TestEveryCheckHasItsFile holds that SARIF points at the scenario of each check, in the
// files of this repository.
func TestEveryCheckHasItsFile(t *testing.T) {
	seen := map[string]bool{}
	for id, at := range rulePlaces() {
		text, err := os.ReadFile(filepath.Join("..", "..", at.file))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		require.Contains(t, lines[at.line-1], "Scenario: ", id)
		require.Contains(t, strings.Join(lines[at.line-5:at.line-1], "\n"), "@"+id+" ")
		seen[filepath.Dir(at.file)] = true
	}
	require.Equal(t, map[string]bool{"features/destination": true, "features/service": true}, seen)
}

// TestSuitesKeepTheirNames holds that a report of a service is not shown as one
// of a destination.
func TestSuitesKeepTheirNames(t *testing.T) {
	for _, suite := range []string{"destination", "service"} {
		r := single(suite, c.Fail)
		var junit junitSuites
		require.NoError(t, xml.Unmarshal(render(t, JUnit, r), &junit))
		require.Equal(t, "destkit."+suite, junit.Suites[0].Package)
		require.Equal(t, "destkit."+suite+".Envelopes", junit.Suites[0].Cases[0].Classname)
		var log sarifLog
		require.NoError(t, json.Unmarshal(render(t, SARIF, r), &log))
		require.Equal(t, "destkit/"+suite+"/v1/", log.Runs[0].Automation.ID)
		require.Equal(t, "features/"+suite+"/envelopes.feature", log.Runs[0].Results[0].Locations[0].Physical.Artifact.URI)
		require.Contains(t, string(render(t, Badge, r)), "destkit "+suite)
	}
}
