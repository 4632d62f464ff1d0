package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"flag"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the tests with -update once")
	if string(want) == string(got) {
		return
	}
	// The first line that differs is clearer than two whole pages.
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		require.Equal(t, a[i], b[i], "%s, line %d", path, i+1)
	}
	require.Len(t, b, len(a), path)
}

func TestGolden(t *testing.T) {
	extension := map[string]string{Text: "txt", JSON: "json", JUnit: "xml", HTML: "html", Markdown: "md",
		GitHub: "github.txt", SARIF: "sarif", HAR: "har", Badge: "badge.json"}
	for _, format := range Formats() {
		t.Run(format, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, Options{}.Write(format, &b, sample()))
			require.Contains(t, extension, format)
			// The files of the catalogue are no subject of this package.
			got := regexp.MustCompile(`"features/[^"]*"`).ReplaceAll(b.Bytes(), []byte(`"features/destination/AREA.feature"`))
			golden(t, "sample."+extension[format], got)
		})
	}
	t.Run("verbose and coloured", func(t *testing.T) {
		var b bytes.Buffer
		require.NoError(t, WriteText(&b, sample(), Options{Color: true, Width: 100, Verbose: true, ReportFile: "my report.json"}))
		golden(t, "sample.verbose.txt", b.Bytes())
	})
	t.Run("conformant", func(t *testing.T) {
		var b bytes.Buffer
		require.NoError(t, Options{}.Write(Text, &b, conformant()))
		golden(t, "conformant.txt", b.Bytes())
	})
}

func TestFormats(t *testing.T) {
	require.Equal(t, []string{"text", "json", "junit", "html", "markdown", "github", "sarif", "har", "badge"}, Formats())
	require.EqualError(t, Options{}.Write("jsn", nil, sample()),
		`write report: unknown format "jsn", known are text, json, junit, html, markdown, github, sarif, har, badge`)
	require.EqualError(t, Options{}.Write(JSON, nil, nil), "write report: there is no report")
}

// TestWritersLeaveTheReportAlone proves that a writer may be called in any
// order and any number of times.
func TestWritersLeaveTheReportAlone(t *testing.T) {
	r := sample()
	for _, format := range Formats() {
		first := render(t, format, r)
		require.Equal(t, sample(), r, format)
		require.Equal(t, string(first), string(render(t, format, r)), format)
	}
}

func TestJUnitParsedBack(t *testing.T) {
	parse := func(r *c.Report) (suites junitSuites, failures, errors, skipped, passed int) {
		require.NoError(t, xml.Unmarshal(render(t, JUnit, r), &suites))
		for i, s := range suites.Suites {
			require.Equal(t, i, s.ID)
			require.Len(t, s.Cases, s.Tests)
			f, e, k := 0, 0, 0
			for _, tc := range s.Cases {
				switch {
				case tc.Failure != nil:
					f++
				case tc.Error != nil:
					e++
				case tc.Skipped != nil:
					k++
				default:
					passed++
				}
			}
			require.Equal(t, []int{f, e, k}, []int{s.Failures, s.Errors, s.Skipped}, s.Name)
			failures, errors, skipped = failures+f, errors+e, skipped+k
		}
		return
	}
	t.Run("each status has its element", func(t *testing.T) {
		suites, failures, errors, skipped, passed := parse(sample())
		require.Equal(t, 2, failures, "FAIL and FLAKY")
		require.Equal(t, 1, errors, "HARNESS_ERROR")
		require.Equal(t, 7, skipped, "WAIVED, N/A, INCONCLUSIVE, two NOT_RUN, own FAIL, problem without an exit status")
		require.Equal(t, 4, passed, "two PASS and two WARN")
		require.Contains(t, suites.Suites[0].Out, "WARN RPC-009")
		require.Contains(t, suites.Suites[1].Cases[0].Failure.Text, "missing  zz-conf-7f3a-RES-002-4@example.com")
		require.Contains(t, suites.Suites[1].Cases[0].Failure.Text, `curl -sS "$DESTKIT_URL"`)
		require.Equal(t, "RES-002 every record that was sent gets a result", suites.Suites[1].Cases[0].Name)
		require.Contains(t, suites.Suites[2].Cases[2].Skipped.Message, "INCONCLUSIVE: record_results look the same")
	})
	t.Run("conformant is green", func(t *testing.T) {
		_, failures, errors, skipped, passed := parse(conformant())
		require.Equal(t, []int{0, 0, 0, 2}, []int{failures, errors, skipped, passed})
	})
	t.Run("an exit status is never green", func(t *testing.T) {
		for status := 1; status <= 6; status++ {
			r := conformant()
			r.ExitStatus = status
			_, failures, errors, _, _ := parse(r)
			require.Equal(t, 1, failures+errors, "exit status %d", status)
		}
		_, failures, errors, _, _ := parse(reports()["unreachable"])
		require.Equal(t, []int{0, 1}, []int{failures, errors}, "the problem itself explains it")
	})
}

// sarifLog is what tests look at of a SARIF file.
type sarifLog struct {
	Runs []struct {
		Tool struct {
			Driver struct{ Rules []struct{ ID string } }
		}
		Automation  struct{ ID string } `json:"automationDetails"`
		Invocations []struct {
			Notifications []any `json:"toolExecutionNotifications"`
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []struct {
				Physical struct {
					Artifact struct{ URI string } `json:"artifactLocation"`
				} `json:"physicalLocation"`
			}
			Fingerprints map[string]string `json:"partialFingerprints"`
			Suppressions []any
			Properties   map[string]any
		}
		Properties map[string]any
	}
}

func TestSARIFResults(t *testing.T) {
	var log sarifLog
	require.NoError(t, json.Unmarshal(render(t, SARIF, sample()), &log))
	run := log.Runs[0]
	require.Len(t, run.Tool.Driver.Rules, len(sample().Checks))
	got := map[string][]string{}
	prints := map[string]bool{}
	for _, x := range run.Results {
		require.Equal(t, x.RuleID, run.Tool.Driver.Rules[x.RuleIndex].ID)
		require.Regexp(t, `^features/destination/[a-z0-9-]+\.feature$`, x.Locations[0].Physical.Artifact.URI)
		require.False(t, prints[x.Fingerprints["destkit/v1"]], "a fingerprint stands for one alert")
		prints[x.Fingerprints["destkit/v1"]] = true
		got[x.RuleID] = append(got[x.RuleID], x.Level)
		require.Equal(t, x.RuleID == "RES-010", len(x.Suppressions) == 1)
	}
	require.Equal(t, map[string][]string{"RES-002": {"error", "error"}, "SEM-005": {"error"},
		"RPC-009": {"warning"}, "TIM-001": {"warning"}, "RES-010": {"warning"}}, got)
	require.False(t, run.Invocations[0].Notifications == nil)
	require.Contains(t, string(render(t, SARIF, sample())), `"helpUri": "https://github.com/destkit/destkit/blob/main/docs/protocol.md#spec-7.2.4"`)

	again := sample()
	again.RunID = "ffff"
	again.Checks[3].Findings[0].Actual = strings.ReplaceAll(again.Checks[3].Findings[0].Actual, "7f3a", "ffff")
	var second sarifLog
	require.NoError(t, json.Unmarshal(render(t, SARIF, again), &second))
	for i := range run.Results {
		require.Equal(t, run.Results[i].Fingerprints, second.Runs[0].Results[i].Fingerprints, "the next run keeps its alerts")
	}
}

// TestReplicasAreNamed holds that every format for people and for CI names the judged replicas, and
// those that alone show a finding.
func TestReplicasAreNamed(t *testing.T) {
	r := replicated()
	for _, format := range []string{Text, JSON, JUnit, HTML, Markdown, SARIF} {
		page := html.UnescapeString(strings.ReplaceAll(string(render(t, format, r)), `\`, ""))
		for _, replica := range r.Replicas {
			require.Contains(t, page, replica, format)
		}
	}
	t.Run("JUnit", func(t *testing.T) {
		var suites junitSuites
		require.NoError(t, xml.Unmarshal(render(t, JUnit, r), &suites))
		for _, s := range suites.Suites {
			require.Equal(t, []setting{{"target", r.Target}, {"replica 1", r.Replicas[0]}, {"replica 2", r.Replicas[1]}}, s.Properties[1:4])
		}
		two, one := suites.Suites[1].Cases[0].Failure, suites.Suites[2].Cases[0].Failure
		require.NotContains(t, two.Message, "shown by", "the second finding is of all")
		require.Contains(t, two.Text, "object contact, operation upsert, shown by https://b.example.com/rpc\n")
		require.Equal(t, r.Checks[6].Reason+" (shown by $DESTKIT_URL (replica 2))", one.Message)
	})
	t.Run("SARIF", func(t *testing.T) {
		var log, alone sarifLog
		require.NoError(t, json.Unmarshal(render(t, SARIF, r), &log))
		require.Equal(t, []any{r.Replicas[0], r.Replicas[1]}, log.Runs[0].Properties["replicas"])
		require.NoError(t, json.Unmarshal(render(t, SARIF, sample()), &alone))
		require.NotContains(t, alone.Runs[0].Properties, "replicas")
		for i, x := range log.Runs[0].Results {
			require.Equal(t, alone.Runs[0].Results[i].Fingerprints, x.Fingerprints, "another replica is the same alert")
			if replica, ok := x.Properties["replica"].(string); ok {
				require.Contains(t, x.Message.Text, "shown by "+replica)
			} else {
				require.NotContains(t, x.Message.Text, "shown by")
			}
		}
	})
	t.Run("diff", func(t *testing.T) {
		require.Contains(t, Compare(sample(), r).Unfair, Difference{"replicas", "", strings.Join(r.Replicas, ", ")})
	})
}

// badge is the answer of a shields endpoint.
type badge struct {
	SchemaVersion         int
	Label, Message, Color string
	IsError               bool
}

func TestBadge(t *testing.T) {
	tests := []struct {
		name           string
		change         func(*c.Report)
		message, color string
	}{
		{"whole, public roots", func(*c.Report) {}, "conformant · semantics", "brightgreen"},
		{"in part", func(r *c.Report) { r.Verdict, r.Undecided = c.ConformantInPart, []string{"A", "B"} },
			"conformant in part · semantics · 2 undecided", "green"},
		{"private roots", func(r *c.Report) { r.Settings.Roots = "private" }, "conformant · semantics · private roots", "blue"},
		{"no TLS", func(r *c.Report) { r.Settings.Roots = "none" }, "conformant · semantics · TLS not judged", "blue"},
		{"a selection", func(r *c.Report) { r.Settings.Selected = []string{"RPC-*"} }, "conformant · semantics · selected checks", "blue"},
		{"another profile", func(r *c.Report) { r.Profile = c.ProfileSpec }, "conformant · semantics · profile spec", "brightgreen"},
		{"a stale waiver", func(r *c.Report) { r.ExitStatus = 4 }, "conformant · semantics", "yellow"},
		{"waived", func(r *c.Report) { r.Checks[0].Status = c.Waived }, "conformant · semantics · 1 waived", "brightgreen"},
		{"non-conformant", func(r *c.Report) { r.Verdict, r.Failed = c.NonConformant, []string{"A"} },
			"non-conformant · 1 of 6 MUSTs failed", "red"},
		{"unknown", func(r *c.Report) { r.Verdict = c.Unknown }, "unknown", "lightgrey"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := conformant()
			tt.change(r)
			var b badge
			require.NoError(t, json.Unmarshal(render(t, Badge, r), &b))
			require.Equal(t, badge{SchemaVersion: 1, Label: "destkit destination", Message: tt.message, Color: tt.color,
				IsError: tt.color == "red" || tt.color == "lightgrey"}, b)
		})
	}
}

func TestTextWidth(t *testing.T) {
	for _, width := range []int{0, 40, 72, 80, 120} {
		var b strings.Builder
		require.NoError(t, WriteText(&b, sample(), Options{Width: width, ReportFile: "r.json"}))
		if width == 0 {
			width = 80
		}
		for l := range strings.Lines(b.String()) {
			l = strings.TrimRight(l, "\n")
			// One long word, the summary and the table may not be broken.
			if foreign.Columns(l) > width && strings.Count(strings.TrimSpace(l), " ") > 1 && l != sample().Summary && width >= 72 {
				t.Errorf("width %d: %q", width, l)
			}
		}
		require.Contains(t, b.String(), sampleExchange().Request.Body.Text, "a word of a command is never cut")
	}
}

// sentencesURL is where sections of the specification lead.
const sentencesURL = `https://github\.com/destkit/destkit/blob/main/docs/(protocol|evidence/service-sentences)\.md#spec-[0-9A-Za-z.]+`

func TestHTMLIsSelfContained(t *testing.T) {
	s := string(render(t, HTML, poisoned(hostile)))
	script := regexp.MustCompile(`(?s)<script>(.*?)</script>`).FindAllStringSubmatch(s, -1)
	require.Len(t, script, 1)
	sum := sha256.Sum256([]byte(script[0][1]))
	require.Contains(t, s, "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the page permits its own script alone")
	require.NotRegexp(t, `(?i)<(link|img|iframe|object|embed|base|form)\b`, s)
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(regexp.MustCompile(`>[^<]*<`).ReplaceAllString(s, "><"), "")
	require.NotRegexp(t, `(?i)\b(src|srcset|action|formaction|background|on[a-z]+)=`, bare)
	for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(s, -1) {
		require.Regexp(t, `^(#|`+sentencesURL+`$)`, m[1])
	}
	require.NotRegexp(t, `url\(|@import`, htmlStyle)
	require.NotContains(t, s, "ZgotmplZ")
	page := string(render(t, HTML, sample()))
	for _, m := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.Contains(t, page, `id="`+m[1]+`"`)
	}
}

// TestGitHubPointsAtTheLine: a message about a line of a file of the repository appears there.
func TestGitHubPointsAtTheLine(t *testing.T) {
	r := sample()
	r.Problems = []c.Problem{{Kind: "waiver", ExitStatus: 4, Message: "ci/waivers.yaml:3: the waiver of RES-002 is stale: nothing failed", Fix: "remove it"}}
	require.Contains(t, string(render(t, GitHub, r)), "::error file=ci/waivers.yaml,line=3,title=destkit%3A waiver::the waiver of RES-002 is stale: nothing failed%0Aremove it\n")
}
