package destination

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/judge"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// strict validates as real endpoints do. Each rule has the message of its field.
type strict struct{ *refuser }

var (
	strictMail  = regexp.MustCompile(`^[a-z0-9._-]+@[a-z0-9-]+\.[a-z]{2,}$`)
	strictPhone = regexp.MustCompile(`^\+[1-9][0-9]{7,14}$`)
)

func newStrict() *strict {
	s := &strict{}
	s.refuser = newRefuser(s.validate)
	text := func(name string, required bool) rpc.Field {
		return rpc.Field{APIName: name, Label: name, Required: required, Createable: true, Updateable: true, Type: rpc.TypeString}
	}
	rank := text("rank", true)
	rank.Type = rpc.TypeInteger
	s.fields = []rpc.Field{
		s.fields[0], text("reply_to", true), text("phone", true), text("status", true), rank, text("nickname", true), text("legacy", false), text("notes", false),
	}
	return s
}

// validate returns the refusal of a strict endpoint. Only DAT-014 sees it; the name of reply_to
// does not show that it requires an address.
func (s *strict) validate(a attempt) string {
	if a.operation == rpc.OperationDelete {
		return ""
	}
	text := func(field string) (string, bool) {
		raw, ok := a.record[field]
		return exchange.KeyText(raw), ok && string(raw) != "null"
	}
	if v, ok := text("reply_to"); ok && !strictMail.MatchString(v) {
		return "reply_to must be a valid email address"
	}
	if v, ok := text("phone"); ok && !strictPhone.MatchString(v) {
		return "phone: not a phone number"
	}
	if v, ok := text("status"); ok && v != "active" && v != "inactive" {
		return `status must be one of "active", "inactive"`
	}
	if v, ok := text("rank"); ok {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > 100 {
			return "rank is out of range"
		}
	}
	if _, ok := text("legacy"); ok {
		return "legacy can no longer be written"
	}
	if _, ok := text("nickname"); ok {
		for key, other := range s.stored["contact"] {
			if key != a.key && string(other["nickname"]) == string(a.record["nickname"]) {
				return "nickname has been taken"
			}
		}
	}
	return ""
}

// tried runs the trial alone and returns what it leaves to the checks.
func tried(t *testing.T, e *strict) (*judge.Scenario, int) {
	t.Helper()
	opts := writing(e.small)
	opts.RunID = scriptRun
	e.token = "the-token-of-the-tests"
	s := prepared(t, e, writeCheck, opts)
	require.NoError(t, s.OpenJournal())
	t.Cleanup(func() { s.Journal.Close() })
	catalog, err := s.Discover(t.Context())
	require.NoError(t, err)
	s.Catalog = catalog
	_, before := e.sent()
	s.TryValues(t.Context(), s.Cat.Checks)
	_, after := e.sent()
	return s.NewScenario(t.Context(), s.Cat.Checks[0], s.Catalog.Object("contact")), after - before
}

// TestTheTrialLearnsWhatAnEndpointTakes: after it no ordinary record is refused.
func TestTheTrialLearnsWhatAnEndpointTakes(t *testing.T) {
	e := newStrict()
	sc, sent := tried(t, e)
	require.LessOrEqual(t, sent, discover.TrialRecords)
	o := sc.Object
	require.True(t, o.Avoids("legacy"), "it is refused in every style and not required")
	for _, name := range []string{"reply_to", "phone", "status", "rank", "nickname", "notes"} {
		require.False(t, o.Avoids(name), name)
	}
	require.True(t, o.Unique("nickname"))
	require.False(t, o.Unique("notes"))
	require.Equal(t, []json.RawMessage{values.Quote("active"), values.Quote("inactive")}, o.Lessons["status"].Choices)
	require.NotNil(t, o.Lessons["reply_to"].Format, "the message names the format")
	require.Equal(t, values.Small, o.Lessons["rank"].Style)

	for _, every := range []bool{false, true} {
		records, err := sc.Make(40, rpc.OperationUpsert, rpc.Field{}, &write.Sending{Every: every})
		require.NoError(t, err)
		sentBatches, err := sc.Write(rpc.OperationUpsert, records, write.Plan{})
		require.NoError(t, err)
		for _, b := range sentBatches {
			for _, r := range b.Records {
				require.True(t, b.Succeeded(r), "%v: %s", r.Values, b.WhyOf(r))
			}
		}
		for i, r := range records {
			records[i] = sc.Changed(r, 1)
		}
		sentBatches, err = sc.Write(rpc.OperationUpsert, records, write.Plan{})
		require.NoError(t, err)
		for _, b := range sentBatches {
			for _, r := range b.Records {
				require.True(t, b.Succeeded(r), "a change: %v: %s", r.Values, b.WhyOf(r))
			}
		}
	}
	require.Zero(t, o.KeyForm, "no message spoke of the identifier")
}

// TestStrictEndpointsAreNotBlamed: their refusals are warnings below the gate, and the records that
// they accept decide every rule.
func TestStrictEndpointsAreNotBlamed(t *testing.T) {
	if testing.Short() {
		t.Skip("a full run")
	}
	e := newStrict()
	r, err := Run(t.Context(), Target{Handler: e, Token: scriptToken}, conformance.Options{
		Write: true, Objects: []string{"contact"}, MaxRecords: 20_000, Seed: 7, RunID: scriptRun, ReadbackFunc: e.readback,
	})
	require.NoError(t, err)
	require.Zero(t, r.ExitStatus, foundBy(r))
	for _, c := range r.Checks {
		require.NotContains(t, []conformance.Status{conformance.Fail, conformance.Flaky, conformance.HarnessError}, c.Status, "%s", foundBy(r))
	}
	require.Subset(t, []string{"DAT-014"}, brokenIn(r), foundBy(r))
	for _, id := range []string{"OPS-007", "SEM-001", "SEM-004", "SEM-007", "SEM-009", "DUR-001", "RES-012"} {
		require.Equal(t, conformance.Pass, resultOf(t, r, id).Status, "%s: %s", id, resultOf(t, r, id).Reason)
	}
}

// TestTheTrialIsBounded: an endpoint that refuses all has cost its few records.
func TestTheTrialIsBounded(t *testing.T) {
	e := newStrict()
	e.refuse = func(attempt) string { return "no" }
	sc, sent := tried(t, e)
	require.LessOrEqual(t, sent, discover.TrialRecords)
	require.Empty(t, e.keys("contact"))
	require.False(t, slices.ContainsFunc(sc.Object.Fields, func(f rpc.Field) bool { return f.Required && sc.Object.Avoids(f.APIName) }), "what is required stays mapped")
}

func TestMessagesNameFields(t *testing.T) {
	f := rpc.Field{APIName: "last_name", Label: "Family name"}
	for message, named := range map[string]bool{
		"last_name is required": true, "Last Name must not be empty": true, "invalid `last_name`": true, "Family name: too long": true,
		"family_name: too long": true, `{"last_name":["bad"]}`: true, "first_name is required": false, "name is required": false,
		"last_names are bad": false, "my_last_name": false, "": false,
	} {
		require.Equal(t, named, discover.Mentions(message, f), message)
	}
}

func TestChoicesOfMessages(t *testing.T) {
	f := rpc.Field{APIName: "status", Type: rpc.TypeString}
	for message, want := range map[string][]string{
		`status must be one of "active", "inactive"`:       {"active", "inactive"},
		"status must be one of: active, inactive":          {"active", "inactive"},
		"status must be one of active, inactive or gone":   {"active", "inactive", "gone"},
		"status: Input should be 'red', 'green' or 'blue'": {"red", "green", "blue"},
		"Input is invalid in several ways":                 nil,
		"allowed values are [a|b]":                         {"a", "b"},
		"status is not valid":                              nil,
	} {
		var got []string
		for _, raw := range discover.Choices(f, message) {
			got = append(got, exchange.KeyText(raw))
		}
		require.Equal(t, want, got, message)
	}
	require.Nil(t, discover.Choices(rpc.Field{APIName: "rank", Type: rpc.TypeInteger}, "rank must be one of 1, 2"))
}

// TestFixturesOfNothing: a mistake in a fixture is reported before anything is written.
func TestFixturesOfNothing(t *testing.T) {
	for want, fixtures := range map[string]map[string]conformance.Fixture{
		`fixtures.contact.nofield: contact has no field "nofield"`:          {"contact": {Fields: map[string]string{"nofield": "3"}}},
		`fixtures.contact.bad.nofield: contact has no field "nofield"`:      {"contact": {Bad: map[string]string{"nofield": "3"}}},
		`fixtures.contcat: no object "contcat"; list_objects names contact`: {"contcat": {Fields: map[string]string{"name": "3"}}},
	} {
		e := newSmall()
		s := prepared(t, e, writeCheck, conformance.Options{Write: true, Objects: []string{"contact"}, SkipConvention: conformance.SkipSuccess, Fixtures: fixtures})
		r, err := s.run(t.Context())
		var usage *conformance.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, want)
		require.Nil(t, r)
		require.Empty(t, e.keys("contact"))
	}
}
