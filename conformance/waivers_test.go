package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWaive(t *testing.T) {
	found := func(pairs ...string) []Finding {
		var out []Finding
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, Finding{Object: pairs[i], Operation: pairs[i+1]})
		}
		return out
	}
	contact := Waiver{Check: "AAA-001", Object: "contact", Reason: "known"}
	order := Waiver{Check: "AAA-001", Object: "order", Reason: "known too"}
	whole := Waiver{Check: "AAA-001", Reason: "all of it"}
	cases := []struct {
		name     string
		waivers  []Waiver
		status   Status
		findings []Finding
		want     Status
	}{
		{"fail", []Waiver{whole}, Fail, found("contact", "upsert"), Waived},
		{"warn", []Waiver{whole}, Warn, found("contact", "upsert"), Waived},
		{"flaky", []Waiver{whole}, Flaky, found("contact", "upsert"), Waived},
		{"pass", []Waiver{whole}, Pass, nil, Pass},
		{"undecided", []Waiver{whole}, Inconclusive, nil, Inconclusive},
		{"not run", []Waiver{whole}, NotRun, nil, NotRun},
		{"harness error", []Waiver{whole}, HarnessError, nil, HarnessError},
		{"another check", []Waiver{{Check: "BBB-001", Reason: "r"}}, Fail, found("contact", ""), Fail},
		{"its object", []Waiver{contact}, Fail, found("contact", "upsert", "contact", "insert"), Waived},
		{"one object of two", []Waiver{contact}, Fail, found("contact", "upsert", "order", "upsert"), Fail},
		{"both objects", []Waiver{contact, order}, Fail, found("contact", "upsert", "order", "upsert"), Waived},
		{"its operation", []Waiver{{Check: "AAA-001", Operation: "upsert", Reason: "r"}}, Fail, found("contact", "upsert"), Waived},
		{"another operation", []Waiver{{Check: "AAA-001", Operation: "insert", Reason: "r"}}, Fail, found("contact", "upsert"), Fail},
		{"another operation of its object", []Waiver{{Check: "AAA-001", Object: "contact", Operation: "insert", Reason: "r"}}, Fail, found("contact", "upsert"), Fail},
		{"an operation, and a finding of none", []Waiver{{Check: "AAA-001", Operation: "upsert", Reason: "r"}}, Fail, found("contact", ""), Fail},
		{"expired", []Waiver{{Check: "AAA-001", Reason: "r", Until: "2001-01-01"}}, Fail, found("contact", ""), Fail},
		{"a failure without findings", []Waiver{whole}, Fail, nil, Fail},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opts := &Options{Waivers: c.waivers}
			r := &CheckResult{Status: c.status, Findings: c.findings, Reason: "before"}
			opts.Waive(&Check{ID: "AAA-001"}, r)
			require.Equal(t, c.want, r.Status)
			if c.want == Waived {
				require.Equal(t, "waived: "+c.waivers[0].Reason, r.Reason)
				require.Equal(t, c.waivers[0], *r.Waiver)
				require.Len(t, r.Findings, len(c.findings), "what was found stays in the report")
			} else {
				require.Nil(t, r.Waiver)
				require.Equal(t, "before", r.Reason)
			}
		})
	}
}

func TestStaleWaivers(t *testing.T) {
	waiver := func(w Waiver) []Waiver { w.Check, w.Reason = "AAA-001", "r"; return []Waiver{w} }
	contact := []Finding{{Object: "contact"}}
	cases := []struct {
		name     string
		waivers  []Waiver
		status   Status
		findings []Finding
		want     string // "" for no problem
	}{
		{"used", waiver(Waiver{}), Waived, contact, ""},
		{"the check passes", waiver(Waiver{}), Pass, nil, "is stale"},
		{"another object fails", waiver(Waiver{Object: "order"}), Fail, contact, "is stale"},
		{"another object is flaky", waiver(Waiver{Object: "order"}), Flaky, contact, "is stale"},
		{"another object warns", waiver(Waiver{Object: "order"}), Warn, contact, "is stale"},
		{"one of two objects", waiver(Waiver{Object: "contact"}), Fail, append(contact, Finding{Object: "order"}), ""},
		{"undecided is not stale", waiver(Waiver{}), Inconclusive, nil, ""},
		{"not run is not stale", waiver(Waiver{}), NotRun, nil, ""},
		{"harness error is not stale", waiver(Waiver{}), HarnessError, nil, ""},
		{"expired", waiver(Waiver{Until: "2001-01-01"}), Fail, contact, "expired on 2001-01-01"},
		{"unknown", []Waiver{{Check: "NOP-001", Reason: "r"}}, Pass, nil, "names no check"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cat := &Catalogue{byID: map[string]*Check{"AAA-001": {ID: "AAA-001"}}}
			opts := &Options{Waivers: c.waivers}
			r := &Report{Checks: []CheckResult{{ID: "AAA-001", Status: c.status, Findings: c.findings}}}
			opts.staleWaivers(r, cat)
			if c.want == "" {
				require.Empty(t, r.Problems)
				return
			}
			require.Len(t, r.Problems, 1)
			require.Equal(t, 4, r.Problems[0].ExitStatus)
			require.Contains(t, r.Problems[0].Message, c.want)
		})
	}
}

// TestWaiverOfAnUnselectedCheck: what was not judged cannot be stale.
func TestWaiverOfAnUnselectedCheck(t *testing.T) {
	opts := &Options{Waivers: []Waiver{{Check: "AAA-001", Reason: "r"}}}
	cat := &Catalogue{byID: map[string]*Check{"AAA-001": {ID: "AAA-001"}}}
	r := &Report{Checks: []CheckResult{{ID: "BBB-001", Status: Pass}}}
	opts.staleWaivers(r, cat)
	require.Empty(t, r.Problems)
}
