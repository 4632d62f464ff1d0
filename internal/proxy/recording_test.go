package proxy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/proxy"
)

const rpcReply = `{"jsonrpc":"2.0","id":"7","result":{"objects":[]}}`

func inBase64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// harOf is an archive of one entry with these members of its request and response.
func harOf(request, response string) string {
	return `{"log":{"version":"1.2","creator":{"name":"x"},"entries":[{"startedDateTime":"2026-03-04T09:30:00.123+01:00","time":12.5,"request":{"method":"POST","url":"https://a.example/rpc?x=1",` +
		request + `},"response":{"status":200,` + response + `},"timings":{"wait":4}}]}}`
}

func harBody(text string) string { b, _ := json.Marshal(text); return string(b) }

// TestArchivesOfOtherPrograms: browsers and proxies write the same call in several ways.
func TestArchivesOfOtherPrograms(t *testing.T) {
	post := `"headers":[{"name":":authority","value":"a.example"},{"name":"content-type","value":"application/json"}],"bodySize":63,"postData":{"mimeType":"application/json","text":` + harBody(rpcBody) + `}`
	answer := `"headers":[],"content":{"size":50,"mimeType":"application/json","text":` + harBody(rpcReply) + `}`
	for name, c := range map[string]struct {
		archive    string
		body       string // of the response
		incomplete int
		other      int
	}{
		"a browser":                        {archive: harOf(post, answer), body: rpcReply},
		"a byte order mark before it":      {archive: "\xef\xbb\xbf" + harOf(post, answer), body: rpcReply},
		"a response in base64":             {archive: harOf(post, `"headers":[],"content":{"size":50,"encoding":"base64","text":"`+inBase64(rpcReply)+`"}`), body: rpcReply},
		"a request in base64":              {archive: harOf(`"headers":[],"postData":{"mimeType":"application/json","encoding":"base64","text":"`+inBase64(rpcBody)+`"}`, answer), body: rpcReply},
		"no bodies were kept":              {archive: harOf(`"headers":[],"bodySize":63`, `"headers":[],"content":{"size":50}`), incomplete: 1},
		"the response was not kept":        {archive: harOf(post, `"headers":[],"content":{"size":50,"mimeType":"application/json"}`), incomplete: 1},
		"an empty response":                {archive: harOf(post, `"headers":[],"content":{"size":0,"mimeType":"x-unknown"}`)},
		"a body that was cut":              {archive: harOf(post, `"headers":[],"content":{"size":50,"text":"{","comment":"Body truncated at 1 byte"}`), incomplete: 1},
		"a page":                           {archive: strings.Replace(harOf(`"headers":[]`, `"headers":[],"content":{"size":1,"text":"a"}`), "POST", "GET", 1), other: 1},
		"a form":                           {archive: harOf(`"headers":[],"postData":{"mimeType":"application/x-www-form-urlencoded","text":"a=b"}`, answer), other: 1},
		"entries before all other members": {archive: strings.Replace(harOf(post, answer), `"version":"1.2","creator":{"name":"x"},`, "", 1), body: rpcReply},
		"members of other programs":        {archive: strings.Replace(harOf(post, answer), `"log":{`, `"_own":[1,{"a":null}],"log":{"_more":{"entries":7},`, 1), body: rpcReply},
	} {
		t.Run(name, func(t *testing.T) {
			var got []*conformance.Sight
			skipped, err := proxy.ReadRecording(strings.NewReader(c.archive), func(s *conformance.Sight) error { got = append(got, s); return nil })
			require.NoError(t, err)
			require.Equal(t, proxy.Skipped{Other: c.other, Incomplete: c.incomplete}, skipped)
			if c.other+c.incomplete > 0 {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			s := got[0]
			require.Equal(t, rpcBody, string(s.RequestBody))
			require.Equal(t, c.body, string(s.Body))
			require.Equal(t, "/rpc?x=1", s.Target)
			require.Equal(t, 200, s.Status)
			require.True(t, s.Started.Equal(time.Date(2026, 3, 4, 8, 30, 0, 123e6, time.UTC)), "%s", s.Started)
			require.Equal(t, 12500*time.Microsecond, s.Total)
			for _, h := range s.RequestHeader {
				require.NotEqual(t, ":", h.Name[:1], "pseudo headers of HTTP/2 are no headers")
			}
		})
	}
}

// TestAnArchiveKeepsWhatWasSentToTheEndpoint: a body that is no call belongs to those of
// the endpoint, where its address has taken calls; another address is other traffic.
func TestAnArchiveKeepsWhatWasSentToTheEndpoint(t *testing.T) {
	entry := func(method, address, body string) string {
		return `{"request":{"method":"` + method + `","url":"` + address + `","headers":[],"postData":{"text":` + harBody(body) + `}},"response":{"status":200,"headers":[],"content":{"text":` + harBody(rpcReply) + `}}}`
	}
	const endpoint = "https://a.example/rpc?x=1"
	archive := `{"log":{"entries":[` + strings.Join([]string{
		entry("POST", endpoint, rpcBody), entry("POST", endpoint, "this is no JSON"), entry("POST", endpoint, ""),
		entry("OPTIONS", endpoint, ""), entry("POST", "https://a.example/form", "this is no JSON"),
	}, ",") + `]}}`
	var bodies []string
	skipped, err := proxy.ReadRecording(strings.NewReader(archive), func(s *conformance.Sight) error {
		bodies = append(bodies, string(s.RequestBody))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{rpcBody, "this is no JSON", ""}, bodies)
	require.Equal(t, proxy.Skipped{Other: 2}, skipped)
}

// TestBadRecordings: an error names the entry and the member, and shows no text of the
// file.
func TestBadRecordings(t *testing.T) {
	good := harOf(`"headers":[],"postData":{"text":`+harBody(rpcBody)+`}`, `"headers":[],"content":{"text":"{}"}`)
	journal := `{"entry":"exchanges","header":{"version":1}}` + "\n"
	for name, c := range map[string]struct{ recording, want string }{
		"nothing":                      {"", "the recording is empty"},
		"no JSON":                      {"\n hello s3cret", "line 2, column 2: not JSON: not the start of a value; expected a journal of destkit proxy or an HTTP Archive"},
		"an array":                     {"[]", "it is no JSON object"},
		"no log":                       {`{"a":1}`, `the member "log" is missing`},
		"no log, and cut off":          {`{"a":1`, "line 1, column 7: not JSON: it ends in the middle; expected a journal"},
		"no entries":                   {`{"log":{"version":"1.2"}}`, `log: the member "entries" is missing`},
		"entries of another type":      {`{"log":{"entries":{}}}`, "log.entries is no array"},
		"cut in the middle":            {good[:len(good)-30], "log.entries[0]: line 1, column 353: not JSON: it ends in the middle; expected a journal"},
		"an entry that is a number":    {`{"log":{"entries":[7]}}`, "log.entries[0]"},
		"no request":                   {`{"log":{"entries":[{"response":{"status":200}}]}}`, "log.entries[0].request is missing"},
		"a status that is a text":      {strings.Replace(good, `"status":200`, `"status":"200"`, 1), "log.entries[0]: response.status must be a whole number, not a string"},
		"a time that is none":          {strings.Replace(good, "2026-03-04T", "yesterday ", 1), "log.entries[0].startedDateTime"},
		"an encoding that is unknown":  {strings.Replace(good, `"text":"{}"`, `"encoding":"rot13","text":"{}"`, 1), "log.entries[0].response.content.text: the encoding"},
		"base64 that is none":          {strings.Replace(good, `"text":"{}"`, `"encoding":"base64","text":"{}"`, 1), "log.entries[0].response.content.text: it is no base64"},
		"a URL that does not parse":    {strings.Replace(good, "https://a.example/rpc?x=1", `http://[::1`, 1), "log.entries[0].request.url does not parse"},
		"a letter in the middle":       {strings.Replace(good, `"status":200`, "\n\"status\":s3cret", 1), "log.entries[0]: line 2, column 10: not JSON: not the start of a value"},
		"a line that is no JSON":       {journal + "{\"entry\": s3cret}", "line 2, column 11: not JSON"},
		"the second line of a journal": {journal + `{"entry":"exchange"}`, "line 2"},
		"a journal without a version":  {`{"entry":"exchanges"}`, "line 1: the member header is missing"},
		"a journal of the future":      {`{"entry":"exchanges","header":{"version":99}}`, "written by a newer destkit: header.version 99, this one reads up to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := proxy.ReadRecording(strings.NewReader(c.recording), func(*conformance.Sight) error { return nil })
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

// FuzzReadRecording: whatever a file holds, reading ends with exchanges or an error that
// names a place.
func FuzzReadRecording(f *testing.F) {
	f.Add([]byte(harOf(`"headers":[],"postData":{"text":`+harBody(rpcBody)+`}`, `"headers":[],"content":{"text":"{}"}`)))
	f.Add([]byte(harOf(`"headers":null`, `"headers":[],"content":null`)))
	f.Add([]byte(`{"entry":"exchanges","header":{"version":1}}` + "\n" + `{"entry":"exchange","exchange":{"id":1,"request":{"method":"POST","url":"/","body":{"text":"{}"}}}}`))
	f.Add([]byte("\xef\xbb\xbf{\"log\":{\"entries\":[]}}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := destination.NewPassive(destination.Target{URL: "https://a.example/"}, conformance.Options{})
		require.NoError(t, err)
		_, err = proxy.ReadRecording(bytes.NewReader(file), func(s *conformance.Sight) error {
			_ = p.Observe(s).Exchange()
			return nil
		})
		if err != nil {
			require.NotEmpty(t, err.Error())
		}
		require.NotNil(t, p.Report())
	})
}

// TestReplaySendsOnlyWhatIsAllowed: a recording is a file of anyone's making. The
// body decides what a call does.
func TestReplaySendsOnlyWhatIsAllowed(t *testing.T) {
	batch := func(object string) string {
		return `{"jsonrpc":"2.0","method":"sync_batch","id":"1","params":{"sync_plan":{"object":{"object_api_name":"` + object + `"}},"records":[{"a":1}]}}`
	}
	for name, c := range map[string]struct {
		method, body string
		write        bool
		sent         bool
	}{
		"a planning call":                 {body: rpcBody, sent: true},
		"a batch":                         {body: batch("contact")},
		"a batch that is permitted":       {body: batch("contact"), write: true, sent: true},
		"a batch into another object":     {body: batch("order"), write: true},
		"two methods":                     {body: strings.Replace(batch("contact"), `"method":`, `"method":"list_objects","method":`, 1)},
		"two methods in another case":     {body: strings.Replace(batch("contact"), `"method":`, `"METHOD":"list_objects","method":`, 1)},
		"two objects":                     {body: strings.Replace(batch("order"), `"sync_plan":{`, `"sync_plan":{"object":{"object_api_name":"contact"},`, 1), write: true},
		"a method that is none":           {body: `{"jsonrpc":"2.0","method":"drop_tables","id":"1","params":{}}`, write: true},
		"a batch of calls":                {body: "[" + rpcBody + "]", write: true},
		"another HTTP method":             {method: "DELETE", body: rpcBody, write: true},
		"a body without its secret":       {body: strings.Replace(rpcBody, `{}`, `{"token":"$DESTKIT_TOKEN"}`, 1)},
		"a method with an escaped letter": {body: strings.Replace(batch("contact"), "sync_batch", `sync\u005fbatch`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				fmt.Fprint(w, rpcReply)
			}))
			defer endpoint.Close()
			archive := harOf(`"headers":[],"postData":{"text":`+harBody(c.body)+`}`, `"headers":[],"content":{"text":`+harBody(rpcReply)+`}`)
			if c.method != "" {
				archive = strings.Replace(archive, `"method":"POST"`, `"method":"`+c.method+`"`, 1)
			}
			r := &proxy.Replay{URL: endpoint.URL, Client: endpoint.Client(), Write: c.write, Objects: []string{"contact"}, MaxBody: 1 << 20}
			report, skipped, err := r.Run(t.Context(), strings.NewReader(archive))
			require.NoError(t, err)
			if c.sent {
				require.EqualValues(t, 1, calls.Load())
				require.Equal(t, 1, report.Same)
				return
			}
			require.Zero(t, calls.Load())
			require.Zero(t, report.Sent)
			require.Equal(t, 1, len(report.NotSent)+skipped.Other, "it is said why")
		})
	}
}

// TestReplayComparesByMeaning: order and values that differ from call to call do not
// count.
func TestReplayComparesByMeaning(t *testing.T) {
	result := func(r string) string { return `{"jsonrpc":"2.0","id":"7","result":` + r + `}` }
	for name, c := range map[string]struct {
		was, is string
		places  []string
	}{
		"other order of members and results": {
			was: result(`{"record_results":[{"identifier":"a","success":true},{"identifier":"b","success":false,"error_message":"no"}]}`),
			is:  `{"result":{"record_results":[{"success":false,"error_message":"denied","identifier":"b"},{"identifier":"a","success":true}]},"id":"7","jsonrpc":"2.0"}`,
		},
		"a result that fails now": {
			was: result(`{"record_results":[{"identifier":"a","success":true}]}`), is: result(`{"record_results":[{"identifier":"a","success":false,"error_message":"no"}]}`),
			places: []string{"result.record_results[].success", "result.record_results[].error_message"},
		},
		"a message that is empty now": {
			was: result(`{"record_results":[{"identifier":"a","success":false,"error_message":"no"}]}`), is: result(`{"record_results":[{"identifier":"a","success":false,"error_message":" "}]}`),
			places: []string{"result.record_results[].error_message"},
		},
		"numbers in another form":    {was: result(`{"maximum_batch_size":1000}`), is: result(`{"maximum_batch_size":1e3}`)},
		"another number":             {was: result(`{"maximum_batch_size":1000}`), is: result(`{"maximum_batch_size":100}`), places: []string{"result.maximum_batch_size"}},
		"a number that is a text":    {was: result(`{"n":1}`), is: result(`{"n":"1"}`), places: []string{"result.n"}},
		"times and ids":              {was: result(`{"at":"2026-01-01T00:00:00Z","request":"0b0b0b0b-0000-4000-8000-000000000001"}`), is: result(`{"at":"2026-02-01T00:00:00Z","request":"0b0b0b0b-0000-4000-8000-000000000002"}`)},
		"the id of the call":         {was: result(`{}`), is: strings.Replace(result(`{}`), `"7"`, `"8"`, 1), places: []string{"id"}},
		"fields in another order":    {was: result(`{"fields":[{"field_api_name":"a"},{"field_api_name":"b"}]}`), is: result(`{"fields":[{"field_api_name":"b"},{"field_api_name":"a"}]}`)},
		"a field less":               {was: result(`{"fields":[{"field_api_name":"a"},{"field_api_name":"b"}]}`), is: result(`{"fields":[{"field_api_name":"b"}]}`), places: []string{"result.fields[]"}},
		"an identifier that changes": {was: result(`{"record_results":[{"identifier":1,"success":true}]}`), is: result(`{"record_results":[{"identifier":"1","success":true}]}`), places: []string{"result.record_results[]", "result.record_results[]"}},
		"no JSON any more":           {was: result(`{}`), is: "<html>", places: []string{"the body"}},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.is) }))
			defer endpoint.Close()
			archive := harOf(`"headers":[],"postData":{"text":`+harBody(rpcBody)+`}`, `"headers":[],"content":{"text":`+harBody(c.was)+`}`)
			r := &proxy.Replay{URL: endpoint.URL, Client: endpoint.Client(), MaxBody: 1 << 20}
			report, _, err := r.Run(t.Context(), strings.NewReader(archive))
			require.NoError(t, err)
			var places []string
			for _, g := range report.Groups {
				for range min(g.Count, 1) {
					places = append(places, g.Place)
				}
			}
			want := map[string]bool{}
			for _, p := range c.places {
				want[p] = true
			}
			require.Len(t, places, len(want), "%v", places)
			for _, p := range places {
				require.True(t, want[p], p)
			}
		})
	}
}
