package protocol

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/internal/yamldoc"
)

// citedSection is one section of the specification that checks of a destination cite.
type citedSection struct {
	Number, Title string
	Sentences     []citedSentence
	Checks        []string // that cite the section itself, not a rule of it
}

// citedSentence is one sentence; Rule is the number of the rule that it opens, such
// as "4.2.1", with the checks that cite it.
type citedSentence struct {
	At, Says, Rule string
	Checks         []string
}

// document is the part of features/service/sentences.yaml that is shown here.
// Checks of a service are on the page of that suite.
type document struct {
	Sections []struct {
		Section   string `yaml:"section"`
		Title     string `yaml:"title"`
		Sentences []struct {
			At       string   `yaml:"at"`
			Says     string   `yaml:"says"`
			Rule     string   `yaml:"rule"`
			By       []string `yaml:"by"`
			Excluded string   `yaml:"excluded"`
			Unbound  string   `yaml:"unbound"`
		} `yaml:"sentences"`
	} `yaml:"sections"`
}

// citedSections are the sections that a check cites, whole or by one of their rules.
func citedSections(checks []*conformance.Check) ([]citedSection, error) {
	var doc document
	if err := yamldoc.Decode("features/service/sentences.yaml", []byte(features.ServiceSentences), &doc); err != nil {
		return nil, err
	}
	citing := map[string][]string{}
	for _, c := range checks {
		for _, number := range c.Sections {
			citing[number] = append(citing[number], c.ID)
		}
	}
	var sections []citedSection
	for _, s := range doc.Sections {
		section := citedSection{Number: s.Section, Title: s.Title, Checks: citing[s.Section]}
		cited := len(section.Checks) > 0
		for _, sentence := range s.Sentences {
			section.Sentences = append(section.Sentences, citedSentence{sentence.At, sentence.Says, sentence.Rule, citing[sentence.Rule]})
			cited = cited || sentence.Rule != "" && len(citing[sentence.Rule]) > 0
		}
		if cited {
			sections = append(sections, section)
		}
	}
	slices.SortStableFunc(sections, func(a, b citedSection) int { return cmp.Compare(a.Number, b.Number) })
	return sections, nil
}

// idRanges writes ids shortly: "RES-002, SEM-001 to SEM-003".
func idRanges(ids []string) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var parts []string
	for i := 0; i < len(ids); {
		last := i
		for last+1 < len(ids) && follows(ids[last], ids[last+1]) {
			last++
		}
		switch last - i {
		case 0:
			parts = append(parts, ids[i])
		case 1:
			parts = append(parts, ids[i], ids[last])
		default:
			parts = append(parts, ids[i]+" to "+ids[last])
		}
		i = last + 1
	}
	return strings.Join(parts, ", ")
}

// follows reports whether b is the id after a in the same area.
func follows(a, b string) bool {
	areaA, numberA, _ := strings.Cut(a, "-")
	areaB, numberB, _ := strings.Cut(b, "-")
	one, errA := strconv.Atoi(numberA)
	two, errB := strconv.Atoi(numberB)
	return errA == nil && errB == nil && areaA == areaB && one+1 == two
}

// Common text of the page and the command; the methods, their examples and the
// rules come from the OpenRPC document and the catalogue.

const diagram = ` your data         the service                   your endpoint     your system
┌─────────┐   ┌───────────────────────┐  POST   ┌─────────────┐   ┌─────────┐
│ tables, │   │ reads rows, compares, │────────►│ one URL,    │──►│         │
│ files,  │──►│ makes batches, waits, │ JSON-RPC│ six methods │   │ records │
│ topics  │   │ sends again           │◄────────│             │◄──│         │
└─────────┘   └───────────────────────┘ response└─────────────┘   └─────────┘
`

const sequence = ` A person tests or saves the connection
   service ── test_connection ──────► endpoint   can you take records now?
 A person sets up a sync, or the service refreshes what it has cached
   service ── list_objects ─────────► endpoint   what can be written to?
   service ── list_fields ──────────► endpoint   which fields, of which types?
   service ── supported_operations ─► endpoint   which writes does it allow?
 A sync run
   service ── get_sync_speed ───────► endpoint   how fast, how parallel?
   service ── sync_batch ───────────► endpoint ┐ one result for each record;
   service ── sync_batch ───────────► endpoint ├ several at once, until every
   service ── sync_batch ───────────► endpoint ┘ record has been sent
`

const introduction = `A custom destination is an HTTPS endpoint that you write. The service reads rows, works out what has changed, and calls your endpoint to write it into your system. The service calls, the endpoint responds; the endpoint never calls the service.`

const httpRequest = `POST /destination HTTP/1.1
Host: endpoint.example.com
Content-Type: application/json
Authorization: Bearer <AUTH_TOKEN>

`

const httpResponse = `HTTP/1.1 200 OK
Content-Type: application/json

`

const envelope = `The header Authorization is there when the connection has a token. The id of the response is that of the request, as a string. A response has result or error, never both. An error says that the whole call failed; the service shows its code and message to people and calls again later. What is wrong with one record of a batch is a result of that record and no error.`

// refusedRequest and refusedResponse are a call that fails as a whole.
const (
	refusedRequest  = `{"jsonrpc": "2.0", "method": "list_everything", "params": {}, "id": "2"}`
	refusedResponse = `{"jsonrpc": "2.0", "id": "2", "error": {"code": -32601, "message": "unknown method"}}`
)
