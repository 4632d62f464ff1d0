package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/internal/lists"
)

// writeSARIF writes a rule for every check and a result for every finding of a failed check.
func writeSARIF(w io.Writer, r *c.Report, opt Options) error {
	rules, results := []jsonObject{}, []jsonObject{}
	for i, check := range r.Checks {
		rules = append(rules, newSARIFRule(r.Suite, check))
		if failed(check) {
			results = append(results, sarifResults(opt, r, check, i)...)
		}
	}
	const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	return encode(w, jsonObject{{"$schema", schema}, {"version", "2.1.0"}, {"runs", []jsonObject{{
		{"tool", jsonObject{{"driver", jsonObject{
			{"name", orWord(r.Tool.Name, "destkit")}, {"version,omitempty", r.Tool.Version}, {"rules", rules},
		}}}},
		{"automationDetails", jsonObject{{"id", "destkit/" + line(r.Suite) + "/" + line(string(r.Profile)) + "/"}}},
		{"invocations", []jsonObject{sarifInvoke(r)}},
		{"results", results},
		{"columnKind", "unicodeCodePoints"},
		{"properties", jsonObject{
			{"replicas,omitempty", r.Replicas}, {"settings", whole(*r).Settings}, {"summary", r.Summary},
			{"target", r.Target}, {"tier", r.Tier}, {"verdict", r.Verdict},
		}},
	}}}})
}

// sarifInvoke distinguishes a run that found faults from one that could not judge.
func sarifInvoke(r *c.Report) jsonObject {
	notes := []jsonObject{}
	note := func(level, text string) {
		notes = append(notes, jsonObject{{"level", level}, {"message", message(text)}})
	}
	for _, p := range problems(r) {
		note(problemLevel(p), p.Kind+": "+p.Message+"\n"+p.Fix)
	}
	for _, check := range lists.Where(r.Checks, hasStatus(c.HarnessError)) {
		note("error", check.ID+": "+check.Reason)
	}
	end := r.Started.Add(time.Duration(r.DurationMS * float64(time.Millisecond)))
	return jsonObject{
		{"executionSuccessful", r.Verdict != c.Unknown}, {"exitCode", r.ExitStatus},
		{"startTimeUtc", r.Started.UTC().Format(time.RFC3339)}, {"endTimeUtc", end.UTC().Format(time.RFC3339)},
		{"toolExecutionNotifications", notes},
	}
}

// newSARIFRule describes a check; the explanation is in the program, for the very version that judged.
func newSARIFRule(suite string, r c.CheckResult) jsonObject {
	tags := []string{"destkit", strings.ToLower(string(r.Level))}
	for _, a := range r.Authority {
		tags = append(tags, string(a))
	}
	level := sarifRuleLevel(r.Level)
	where := ""
	if len(r.Sections) > 0 {
		where = features.AnchorURL(suite == c.SuiteService, line(r.Sections[0]))
	}
	return jsonObject{
		{"id", r.ID},
		{"shortDescription", message(r.Title)},
		{"fullDescription", message(r.Title + " (" + rank(r) + ")")},
		{"help", message(fmt.Sprintf("%s. Run \"destkit explain %s\" for the reason, a good and a bad exchange.", rank(r), r.ID))},
		{"helpUri,omitempty", where},
		{"defaultConfiguration", jsonObject{{"level", level}}},
		{"properties", jsonObject{
			{"precision", "very-high"},
			{"problem.severity", map[string]string{"error": "error", "warning": "warning", "note": "recommendation"}[level]},
			{"tags", slices.Compact(tags)},
		}},
	}
}

// sarifRuleLevel is the weight of a rule before a profile changes it.
func sarifRuleLevel(l c.Level) string {
	return cmp.Or(map[c.Level]string{c.Must: "error", c.Should: "warning"}[l], "note")
}

// sarifResults returns one result per finding, or one for the check itself.
func sarifResults(opt Options, r *c.Report, check c.CheckResult, rule int) (results []jsonObject) {
	level := "warning"
	switch {
	case check.Level == c.Info:
		level = "note"
	case stopsGate(check):
		level = "error"
	case check.Status == c.Waived:
		level = sarifRuleLevel(check.Level)
	}
	var suppressions []jsonObject
	if check.Status == c.Waived {
		suppressions = []jsonObject{{{"kind", "external"}, {"status", "accepted"}, {"justification", waiver(check.Waiver)}}}
	}
	// An endpoint has no file, and code scanning refuses results without one.
	at := placeOfRule(r.Suite, check)
	location := jsonObject{
		{"physicalLocation", jsonObject{{"artifactLocation", jsonObject{{"uri", at.file}}}, {"region", jsonObject{{"startLine", at.line}}}}},
		{"logicalLocations", []jsonObject{{{"name", check.ID}, {"fullyQualifiedName", line(check.Area) + "/" + check.ID}, {"kind", "member"}}}},
	}
	findings := check.Findings
	if len(findings) == 0 {
		findings = []c.Finding{{}}
	}
	seen := map[string]int{}
	for _, f := range findings {
		// The same rule broken in the same place is the same alert in every run.
		key := strings.Join([]string{check.ID, f.Object, f.Operation, f.Rule}, "\x00")
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, seen[key]))
		results = append(results, jsonObject{
			{"ruleId", check.ID}, {"ruleIndex", rule}, {"level", level}, {"message", message(sarifText(check, f))},
			{"locations", []jsonObject{location}},
			{"partialFingerprints", jsonObject{{"destkit/v1", hex.EncodeToString(sum[:16])}}},
			{"suppressions,omitempty", suppressions},
			{"properties", jsonObject{
				{"curl", f.Curl}, {"fix", f.Fix}, {"replay", opt.again(r, check)}, {"replica,omitempty", f.Replica}, {"status", check.Status},
			}},
		})
	}
	return results
}

// sarifText is the whole finding: code scanning shows the message and hides the properties.
func sarifText(check c.CheckResult, f c.Finding) string {
	parts := valued([]setting{{"", check.ID + ": " + check.Title}, {"", check.Reason}, {"Where: ", place(f)},
		{"Expected: ", f.Expected}, {"Actual: ", f.Actual}, {f.CauseLabel() + ": ", f.Cause}, {"Fix: ", f.Fix}})
	return strings.Join(lists.Of(parts, func(s setting) string { return s.Name + limit(s.Value, maxField) }), "\n")
}

// rulePlace is where the scenario of a check begins.
type rulePlace struct {
	file string
	line int
}

// rulePlaces maps the ids of both catalogues to their scenarios.
var rulePlaces = sync.OnceValue(func() map[string]rulePlace {
	out := map[string]rulePlace{}
	for _, suite := range []string{c.SuiteDestination, c.SuiteService} {
		cat, err := c.LoadCatalogue(suite)
		if err != nil {
			continue // every check then gets a path from the name of its area
		}
		for _, check := range cat.Checks {
			out[check.ID] = rulePlace{"features/" + check.File, check.Line}
		}
	}
	return out
})

// placeOfRule is the scenario of a check; one of another version gets a path from its area.
func placeOfRule(suite string, check c.CheckResult) rulePlace {
	if at, known := rulePlaces()[check.ID]; known {
		return at
	}
	return rulePlace{"features/" + slug(orWord(suite, "destination")) + "/" + slug(check.Area) + ".feature", 1}
}

// slug turns a name into a part of a path.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return orWord(strings.Join(words, "-"), "unnamed")
}

// message makes a plain text message. Square brackets that would form links (SARIF 2.1.0, 3.11.6) are escaped.
func message(s string) jsonObject {
	s = cmp.Or(text(s), "(no text)")
	if strings.Contains(s, "](") {
		s = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(s)
	}
	return jsonObject{{"text", s}}
}
