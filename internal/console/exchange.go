package console

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/foreign"
)

// Exchange is one request with its response in a list of traffic, whoever recorded it:
// the journals of the service, that of the simulator, a proxy.
type Exchange struct {
	Link       string    // of the page that has it in full, below the root of the console; "" for none
	ID         string    // as its JSON names it
	At         time.Time // when it began
	Method     string    // of HTTP or of the protocol
	Target     string    // path and query, or the endpoint
	Status     int       // 0: there was no response
	Outcome    string    // in words, where the status does not say it
	DurationMS float64
	Sent       int64    // bytes of the request
	Received   int64    // bytes of the response
	Tags       []string // faults, the sync, the process
	Breaks     int      // rules that it breaks, where that is known
	Checks     []string // those of its rules that have ids, in the place of Breaks
}

// Tone is the colour of an exchange.
func (e Exchange) Tone() string {
	switch {
	case e.Status == 0:
		return "bad"
	case e.Outcome != "" && e.Outcome != "ok":
		return tone("failed")
	}
	return tone(e.Status)
}

// Exchanges is a page of a list of traffic, newest first.
type Exchanges struct {
	Items   []Exchange
	Total   int64 // ever recorded
	Dropped int64 // of these, forgotten
	Older   int64 // the number to go on with; 0 at the end
	Newest  bool  // the page begins with the newest
	Empty   string
}

// Message is a request or a response in full.
type Message struct {
	Headers []string // "Name: value"
	Body    json.RawMessage
	Bytes   int64
	Missing string // why there is no body
	Note    string // a note on the body, such as that it was cut
}

// Full is one exchange in full.
type Full struct {
	Exchange
	Request, Response Message
	Rules             string   // the document that it is held against
	Broken            []string // what it breaks of that
	Checked           bool     // it was held against it
	Snippets          []Snippet
	Facts             []Fact
}

// Fact is a line of a list of facts.
type Fact struct{ Name, Value, Link string }

// Snippet is an exchange as something to paste.
type Snippet struct{ Name, Language, Text string }

// HTTPRequest is what a snippet repeats. Secret names the environment variable that
// holds the token; the token itself is nowhere.
type HTTPRequest struct {
	Method, URL string
	Secret      string
	Body        json.RawMessage
	Status      int // that was answered, which the test expects again
}

// Snippets gives a request as a command for curl, and as a test in Go, Python and Node.
func Snippets(r HTTPRequest) []Snippet {
	body := ""
	if len(r.Body) > 0 {
		body = pretty(r.Body)
	}
	return []Snippet{
		{"curl", "sh", curl(r, body)}, {"Go", "go", goTest(r, body)}, {"Python", "py", pythonTest(r, body)}, {"Node", "js", nodeTest(r, body)},
	}
}

func curl(r HTTPRequest, body string) string {
	shown := foreign.Request{Method: r.Method, URL: r.URL, Token: r.Secret, Body: body}
	if body != "" {
		shown.Header = [][2]string{{"Content-Type", "application/json"}}
	}
	return strings.Join(shown.Curl(), " \\\n  ") + "\n"
}

// goQuote prefers a raw literal, which people can read.
func goQuote(s string) string {
	if strings.ContainsAny(s, "`\r\ufeff") || !strings.Contains(s, "\n") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

func goTest(r HTTPRequest, body string) string {
	imports := []string{"net/http", "testing"}
	reader := "nil"
	if body != "" {
		imports, reader = append(imports, "strings"), "strings.NewReader("+goQuote(body)+")"
	}
	if r.Secret != "" {
		imports = append(imports, "os")
	}
	sort.Strings(imports)
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, name := range imports {
		fmt.Fprintf(&b, "\t%q\n", name)
	}
	fmt.Fprintf(&b, ")\n\nfunc TestRequest(t *testing.T) {\n\treq, err := http.NewRequest(%q, %q, %s)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n", r.Method, r.URL, reader)
	if r.Secret != "" {
		fmt.Fprintf(&b, "\treq.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(%q))\n", r.Secret)
	}
	if body != "" {
		b.WriteString("\treq.Header.Set(\"Content-Type\", \"application/json\")\n")
	}
	fmt.Fprintf(&b, "\tres, err := http.DefaultClient.Do(req)\n\tif err != nil {\n\t\tt.Fatal(err)\n\t}\n\tdefer res.Body.Close()\n\tif res.StatusCode != %d {\n\t\tt.Errorf(\"status %%d, want %d\", res.StatusCode)\n\t}\n}\n", r.Status, r.Status)
	return b.String()
}

// jsonQuote is a string literal of Python and JavaScript.
func jsonQuote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(out)
}

func pythonTest(r HTTPRequest, body string) string {
	var b strings.Builder
	b.WriteString("import os\nimport urllib.error\nimport urllib.request\n\n\ndef test_request():\n    headers = {}\n")
	if r.Secret != "" {
		fmt.Fprintf(&b, "    headers[\"Authorization\"] = \"Bearer \" + os.environ[%s]\n", jsonQuote(r.Secret))
	}
	data := "None"
	if body != "" {
		b.WriteString("    headers[\"Content-Type\"] = \"application/json\"\n")
		data = jsonQuote(body) + ".encode()"
	}
	fmt.Fprintf(&b, "    request = urllib.request.Request(%s, method=%s, headers=headers, data=%s)\n", jsonQuote(r.URL), jsonQuote(r.Method), data)
	fmt.Fprintf(&b, "    try:\n        status = urllib.request.urlopen(request).status\n    except urllib.error.HTTPError as error:\n        status = error.code\n    assert status == %d\n", r.Status)
	return b.String()
}

func nodeTest(r HTTPRequest, body string) string {
	var b strings.Builder
	b.WriteString("import assert from 'node:assert/strict';\nimport test from 'node:test';\n\ntest('request', async () => {\n  const headers = {};\n")
	if r.Secret != "" {
		fmt.Fprintf(&b, "  headers.Authorization = `Bearer ${process.env.%s}`;\n", r.Secret)
	}
	with := ""
	if body != "" {
		b.WriteString("  headers['Content-Type'] = 'application/json';\n")
		with = ", body: " + jsonQuote(body)
	}
	fmt.Fprintf(&b, "  const response = await fetch(%s, { method: %s, headers%s });\n  assert.equal(response.status, %d);\n});\n", jsonQuote(r.URL), jsonQuote(r.Method), with, r.Status)
	return b.String()
}
