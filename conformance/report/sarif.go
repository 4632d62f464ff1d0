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

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// The objects of SARIF 2.1.0 that code scanning reads.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifAutomation   `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
		Properties  map[string]any    `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifAutomation struct {
		ID string `json:"id"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		ExitCode      int                 `json:"exitCode"`
		Start         string              `json:"startTimeUtc"`
		End           string              `json:"endTimeUtc"`
		Notifications []sarifNotification `json:"toolExecutionNotifications"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID         string         `json:"id"`
		Short      sarifMessage   `json:"shortDescription"`
		Full       sarifMessage   `json:"fullDescription"`
		Help       sarifMessage   `json:"help"`
		HelpURI    string         `json:"helpUri,omitempty"`
		Default    sarifLevel     `json:"defaultConfiguration"`
		Properties map[string]any `json:"properties"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   map[string]any     `json:"properties"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Full string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Status        string `json:"status"`
		Justification string `json:"justification"`
	}
)

// writeSARIF writes a rule for every check and a result for every finding of
// a check that failed, in whatever way it counts.
func writeSARIF(w io.Writer, r *c.Report, opt Options) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: orWord(r.Tool.Name, "destkit"), Version: r.Tool.Version, Rules: []sarifRule{}}},
		Automation:  sarifAutomation{"destkit/" + line(r.Suite) + "/" + line(string(r.Profile)) + "/"},
		Invocations: []sarifInvocation{sarifInvoke(r)},
		Results:     []sarifResult{},
		ColumnKind:  "unicodeCodePoints",
		Properties: map[string]any{"target": r.Target, "verdict": r.Verdict, "tier": r.Tier,
			"summary": r.Summary, "settings": whole(*r).Settings},
	}
	if len(r.Replicas) > 0 {
		run.Properties["replicas"] = r.Replicas
	}
	for i, check := range r.Checks {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, newSARIFRule(r.Suite, check))
		switch check.Status {
		case c.Fail, c.Warn, c.Flaky, c.Waived:
			run.Results = append(run.Results, sarifResults(opt, r, check, i)...)
		}
	}
	return encode(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

// sarifInvoke tells apart a run that found faults from one that could not
// judge, which a list of results alone cannot.
func sarifInvoke(r *c.Report) sarifInvocation {
	end := r.Started.Add(time.Duration(r.DurationMS * float64(time.Millisecond)))
	inv := sarifInvocation{
		Successful: r.Verdict != c.Unknown, ExitCode: r.ExitStatus,
		Start: r.Started.UTC().Format(time.RFC3339), End: end.UTC().Format(time.RFC3339),
		Notifications: []sarifNotification{},
	}
	for _, p := range problems(r) {
		level := "warning"
		if p.ExitStatus != 0 {
			level = "error"
		}
		inv.Notifications = append(inv.Notifications, sarifNotification{level, message(p.Kind + ": " + p.Message + "\n" + p.Fix)})
	}
	for _, check := range lists.Where(r.Checks, hasStatus(c.HarnessError)) {
		inv.Notifications = append(inv.Notifications, sarifNotification{"error", message(check.ID + ": " + check.Reason)})
	}
	return inv
}

// newSARIFRule describes a check. Its helpUri is the section of the specification;
// the explanation is in the program, for the very version that judged.
func newSARIFRule(suite string, r c.CheckResult) sarifRule {
	tags := []string{"destkit", strings.ToLower(string(r.Level))}
	for _, a := range r.Authority {
		tags = append(tags, string(a))
	}
	level := sarifRuleLevel(r.Level)
	severity := map[string]string{"error": "error", "warning": "warning", "note": "recommendation"}[level]
	help := fmt.Sprintf("%s. Run \"destkit explain %s\" for the reason, a good and a bad exchange.", rank(r), r.ID)
	where := ""
	if len(r.Sections) > 0 {
		where = features.AnchorURL(suite == c.SuiteService, line(r.Sections[0]))
	}
	return sarifRule{
		HelpURI: where,
		ID:      r.ID, Short: message(r.Title), Full: message(r.Title + " (" + rank(r) + ")"), Help: message(help),
		Default:    sarifLevel{level},
		Properties: map[string]any{"tags": slices.Compact(tags), "problem.severity": severity, "precision": "very-high"},
	}
}

// sarifRuleLevel is the weight of a rule before a profile has its say.
func sarifRuleLevel(l c.Level) string {
	switch l {
	case c.Must:
		return "error"
	case c.Should:
		return "warning"
	}
	return "note"
}

// sarifResults returns one result per finding, or one for the check itself.
func sarifResults(opt Options, r *c.Report, check c.CheckResult, rule int) []sarifResult {
	level := "warning"
	switch {
	case check.Level == c.Info:
		level = "note"
	case stopsGate(check):
		level = "error"
	case check.Status == c.Waived:
		level = sarifRuleLevel(check.Level)
	}
	findings := check.Findings
	if len(findings) == 0 {
		findings = []c.Finding{{}}
	}
	var out []sarifResult
	seen := map[string]int{}
	for _, f := range findings {
		// The same rule broken in the same place is the same alert in every
		// run, whatever keys the run used.
		key := strings.Join([]string{check.ID, f.Object, f.Operation, f.Rule}, "\x00")
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", key, seen[key]))
		result := sarifResult{
			RuleID: check.ID, RuleIndex: rule, Level: level, Message: message(sarifText(check, f)),
			Locations:    []sarifLocation{sarifPlace(r, check)},
			Fingerprints: map[string]string{"destkit/v1": hex.EncodeToString(sum[:16])},
			Properties: map[string]any{"status": check.Status, "curl": f.Curl, "fix": f.Fix,
				"replay": opt.again(r, check)},
		}
		if f.Replica != "" {
			result.Properties["replica"] = f.Replica
		}
		if check.Status == c.Waived {
			result.Suppressions = []sarifSuppression{{"external", "accepted", waiver(check.Waiver)}}
		}
		out = append(out, result)
	}
	return out
}

// sarifText is the whole finding as text: code scanning shows the message and
// hides the properties.
func sarifText(check c.CheckResult, f c.Finding) string {
	var lines []string
	say := func(label, s string) {
		if s != "" {
			lines = append(lines, label+limit(s, maxField))
		}
	}
	say("", check.ID+": "+check.Title)
	say("", check.Reason)
	say("Where: ", place(f))
	say("Expected: ", f.Expected)
	say("Actual: ", f.Actual)
	say(f.CauseLabel()+": ", f.Cause)
	say("Fix: ", f.Fix)
	return strings.Join(lines, "\n")
}

// sarifPlace points at the rule in the catalogue: an endpoint has no file,
// and code scanning refuses results without one.
func sarifPlace(r *c.Report, check c.CheckResult) sarifLocation {
	at := placeOfRule(r.Suite, check)
	return sarifLocation{
		Physical: sarifPhysical{sarifArtifact{at.file}, sarifRegion{at.line}},
		Logical:  []sarifLogical{{Name: check.ID, Full: line(check.Area) + "/" + check.ID, Kind: "member"}},
	}
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

// placeOfRule is the scenario of a check in the repository. A check of another version
// of the catalogue gets a path from the name of its area.
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

// message makes a plain text message. Square brackets can form links there
// (SARIF 2.1.0, 3.11.6), so that text of an endpoint gets its brackets escaped
// when they would.
func message(s string) sarifMessage {
	s = cmp.Or(text(s), "(no text)")
	if strings.Contains(s, "](") {
		s = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(s)
	}
	return sarifMessage{s}
}
