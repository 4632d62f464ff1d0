package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/protocol"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/openapi"
)

// TestProtocolPage keeps docs/protocol.md; -update writes it.
func TestProtocolPage(t *testing.T) {
	requirePage(t, "protocol.md", protocolPageText(t))
}

// requirePage holds a page of docs/ against what makes it, or writes it.
func requirePage(t *testing.T, name, text string) {
	t.Helper()
	page := filepath.Join(repository, "docs", filepath.FromSlash(name))
	if *updateFiles {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
	kept, err := os.ReadFile(page)
	require.NoError(t, err)
	requireKept(t, text, string(kept), fmt.Sprintf("%s: run go test ./cmd/destkit -run %s -update", page, t.Name()))
}

// requireKept compares long texts and shows the first line that differs, where a
// failure with all of both would bury every other one.
func requireKept(t *testing.T, made, kept, fix string) {
	t.Helper()
	if made == kept {
		return
	}
	want, got := strings.Split(made, "\n"), strings.Split(kept, "\n")
	line := 0
	for line < min(len(want), len(got)) && want[line] == got[line] {
		line++
	}
	at := func(lines []string) string {
		if line < len(lines) {
			return lines[line]
		}
		return "(the end)"
	}
	require.FailNowf(t, "not what is made now", "%s\nline %d\nmade: %s\nkept: %s", fix, line+1, at(want), at(got))
}

func protocolPageText(t *testing.T) string {
	t.Helper()
	book, err := protocol.NewBook()
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, book.WritePage(&page))
	return page.String()
}

// pageExchanges are the requests and responses on the page: its blocks in pairs. Of
// HTTP messages the body counts.
func pageExchanges(t *testing.T) [][2]string {
	t.Helper()
	var bodies []string
	for _, m := range regexp.MustCompile("(?s)```(json|http)\n(.*?)\n```").FindAllStringSubmatch(protocolPageText(t), -1) {
		body := m[2]
		if m[1] == "http" {
			_, after, found := strings.Cut(body, "\n\n")
			require.True(t, found, body)
			body = after
		}
		bodies = append(bodies, body)
	}
	require.Zero(t, len(bodies)%2)
	var pairs [][2]string
	for pair := range slices.Chunk(bodies, 2) {
		pairs = append(pairs, [2]string{pair[0], pair[1]})
	}
	return pairs
}

// TestProtocolExamplesAreValid holds every example on the page against the contract.
func TestProtocolExamplesAreValid(t *testing.T) {
	seen := map[string]int{}
	for _, pair := range pageExchanges(t) {
		var request struct {
			JSONRPC, Method, ID string
			Params              json.RawMessage
		}
		var response struct {
			JSONRPC, ID string
			Result      json.RawMessage
			Error       *rpc.Error
		}
		require.NoError(t, json.Unmarshal([]byte(pair[0]), &request), pair[0])
		require.NoError(t, json.Unmarshal([]byte(pair[1]), &response), pair[1])
		require.Equal(t, "2.0", request.JSONRPC)
		require.Equal(t, "2.0", response.JSONRPC)
		require.Equal(t, request.ID, response.ID)
		seen[request.Method]++
		if response.Error != nil {
			require.Nil(t, response.Result)
			require.ErrorIs(t, openapi.ValidateParams(request.Method, request.Params), openapi.ErrMethod)
			continue
		}
		require.NoError(t, openapi.ValidateParams(request.Method, request.Params))
		require.NoError(t, openapi.ValidateResult(request.Method, response.Result))
	}
	for _, m := range protocol.ReadDocument().Methods {
		require.Positive(t, seen[m.Name], "%s has no example", m.Name)
	}
}

// TestProtocolExamplesAreAnswered sends every request on the page, in its order, to
// a simulated destination of these objects. The responses are the same but for the
// words of messages.
func TestProtocolExamplesAreAnswered(t *testing.T) {
	sim := exampleSim(t)
	for _, pair := range pageExchanges(t) {
		broken := strings.Contains(pair[1], "The API Key is invalid")
		if broken {
			require.Equal(t, http.StatusOK, post(sim, "/_control/hooks/break_downstream", `{"hook":"break_downstream","action":"begin"}`).Code)
		}
		if strings.Contains(pair[1], "API Error, please retry") {
			_, err := sim.ArmFault(destsim.Fault{Kind: "record_failure", When: destsim.Trigger{Identifier: json.RawMessage(`"Seva"`), Times: 1}})
			require.NoError(t, err)
		}
		answer := post(sim, "/", pair[0])
		require.JSONEq(t, anyWords(t, pair[1]), anyWords(t, answer.Body.String()), pair[0])
		if broken {
			require.Equal(t, http.StatusOK, post(sim, "/_control/hooks/break_downstream", `{"hook":"break_downstream","action":"end"}`).Code)
		}
	}
}

// exampleSim is the destination of the examples.
func exampleSim(t *testing.T) *destsim.Sim {
	t.Helper()
	all := []string{"upsert", "insert", "update", "mirror"}
	sim, err := destsim.New(destsim.Config{
		Objects: []destsim.ObjectConfig{
			{Name: "restaurant", Label: "Restaurants", CanCreateFields: true, Operations: all, Fields: []destsim.FieldConfig{
				{Name: "name", Label: "Name", Type: rpc.TypeString, Identifier: true, Required: true},
				{Name: "zip", Label: "ZIP Code", Type: rpc.TypeString},
				{Name: "tag_list", Label: "Tags", Type: rpc.TypeString, Array: true},
			}},
			{Name: "concert", Label: "Concerts", Operations: all, Fields: []destsim.FieldConfig{
				{Name: "id", Type: rpc.TypeString, Identifier: true, Required: true},
			}},
		},
		Speed: rpc.Speed{MaximumBatchSize: 1000, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 2000},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sim.Close()) })
	return sim
}

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// anyWords puts one word in the place of every message.
func anyWords(t *testing.T, text string) string {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				if message, ok := item.(string); ok && message != "" && (key == "error_message" || key == "message") {
					v[key] = "…"
				}
				walk(item)
			}
		}
	}
	walk(value)
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

// TestProtocolRulesAreShownOnce: every check that demands or advises something is on
// the page, once.
func TestProtocolRulesAreShownOnce(t *testing.T) {
	page := protocolPageText(t)
	catalogue, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	for _, c := range catalogue.Checks {
		want := 1
		if c.Level == conformance.Info {
			want = 0
		}
		require.Equal(t, want, strings.Count(page, "\n| "+c.ID+" | "), c.ID)
	}
}

// TestProtocolFitsTheScreen: no line is wider than 80 columns, and what can be
// pasted is whole.
func TestProtocolFitsTheScreen(t *testing.T) {
	book, err := protocol.NewBook()
	require.NoError(t, err)
	for _, methods := range [][]protocol.Method{nil, book.Methods} {
		var plain, coloured bytes.Buffer
		require.NoError(t, book.WriteText(&plain, methods, false))
		require.NoError(t, book.WriteText(&coloured, methods, true))
		for line := range strings.Lines(plain.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, line)
			require.NotContains(t, line, "\x1b")
			require.NotContains(t, line, "`")
		}
		bare := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(coloured.String(), "")
		require.Equal(t, plain.String(), bare)
		require.NotEqual(t, bare, coloured.String())
	}
}

// TestCitedSectionsHaveAnchors: each number that a check cites leads to an anchor.
func TestCitedSectionsHaveAnchors(t *testing.T) {
	checks, err := catalogues("")
	require.NoError(t, err)
	pages := map[string]string{}
	for _, c := range checks {
		for _, section := range c.Sections {
			url := features.AnchorURL(path.Dir(c.File) == conformance.SuiteService, section)
			page, anchor, found := strings.Cut(strings.TrimPrefix(url, "https://github.com/destkit/destkit/blob/main/"), "#")
			require.True(t, found, url)
			if pages[page] == "" {
				text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(page)))
				require.NoError(t, err)
				pages[page] = string(text)
			}
			require.Contains(t, pages[page], `<a id="`+anchor+`"></a>`, "%s cites spec %s", c.ID, section)
		}
	}
	require.Len(t, pages, 2)
}
