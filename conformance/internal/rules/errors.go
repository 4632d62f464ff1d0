package rules

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// errorsGroup judges deadlines, stalls, and the content of errors (spec 5.2.4, 7.2.2).
func errorsGroup(g ruleset) map[string]Claim {
	g.on(answers, "ERR-003", "ERR-004")
	g.on(begun, "TIM-003")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		return c.known() && c.Method != rpc.MethodSyncBatch && (c.Ended() || c.Total > t.PlanningTimeout)
	}, "TIM-001")
	g.onTraffic(func(t *Traffic, c *Call) bool {
		// A small batch in time shows nothing about a full one.
		full := t.speed != nil && int64(c.Records) >= t.speed.MaximumBatchSize
		return c.Batch != nil && (full && c.enveloped() || c.Total > t.BatchTimeout)
	}, "TIM-002")
	g.on(resultOf(rpc.MethodTestConnection), "VER-001")
	return map[string]Claim{
		"every reply arrives within the planning deadline": arrives(func(l *Look) time.Duration { return l.PlanningTimeout }),
		"every reply arrives within the batch deadline":    arrives(func(l *Look) time.Duration { return l.BatchTimeout }),
		"every reply arrives without a stall":              withoutStall,
		"every error reveals nothing internal":             eachError(revealsInternals),
		"every error is short readable text":               eachError(unreadable),

		"it is noted which protocol and profile the verdict is for": func(l *Look) error {
			l.note("judged against the custom destination protocol v1 with the profile %s; deadlines: planning %s, batch %s (policy)",
				l.Profile, l.PlanningTimeout, l.BatchTimeout)
			return nil
		},
	}
}

func withoutStall(l *Look) error {
	for _, r := range l.Replies {
		if r.Status != 0 && r.MaxGap > l.PlanningTimeout/2 {
			l.broken("a body that comes without long pauses", fmt.Sprintf("%s: the body stood still for %s", r.What(), exchange.Round(r.MaxGap)), r)
		}
	}
	return l.measured()
}

func arrives(within func(l *Look) time.Duration) Claim {
	return func(l *Look) error {
		limit := within(l)
		for _, r := range l.Replies {
			if r.Kind == wire.KindTimeout || r.Total > limit {
				l.broken(fmt.Sprintf("a complete reply within %s", limit), fmt.Sprintf("%s: nothing complete after %s", r.What(), exchange.Round(r.Total)), r)
			}
		}
		return l.measured()
	}
}

// measured is held, of calls at a rate that was reached.
func (l *Look) measured() error {
	err := l.held()
	if err == nil && l.Reached != nil && *l.Reached < 0.9 {
		return &Undecided{conformance.Inconclusive, "a load test", fmt.Sprintf("the judge reached only %.0f %% of the declared rate", *l.Reached*100)}
	}
	return err
}

// eachError is the claim about the text of each error: expected, and its faults.
func eachError(wrong func(r *reply, text string) (expected string, actual []string)) Claim {
	return func(l *Look) error {
		for _, r := range lists.Where(l.Replies, (*reply).IsError) {
			expected, actual := wrong(r, r.WholeErrorText())
			for _, a := range actual {
				l.broken(expected, r.What()+": "+a, r)
			}
		}
		return l.held()
	}
}

func revealsInternals(r *reply, text string) (expected string, actual []string) {
	if data := r.Member("error").Get("data"); data != nil {
		text += "\n" + exchange.NodeText(data) + "\n" + strings.ReplaceAll(string(data.Raw), `\n`, "\n")
	}
	for _, i := range internals {
		if m := i.mark.FindString(text); m != "" && !repeatsSent(r, m) {
			actual = append(actual, i.what+": "+foreign.Clip(m, 120))
		}
	}
	return "an error that tells the caller what to do, without internals", actual
}

func unreadable(r *reply, text string) (expected string, actual []string) {
	length := utf8.RuneCountInString(text)
	switch {
	case strings.TrimSpace(text) == "":
		return "a short readable message", []string{"the message is empty"}
	case length > maxMessage && repeatsSent(r, strings.ToValidUTF8(text[len(text)/2:len(text)/2+100], "")): // a long value
	case length > maxMessage:
		return fmt.Sprintf("a message of at most %d characters", maxMessage), []string{quantity.Count(length, "character")}
	case !strings.ContainsFunc(text, unicode.IsLetter):
		return "readable text", []string{"the message has no word: " + foreign.Clip(text, 80)}
	case markup.MatchString(text) && !repeatsSent(r, markup.FindString(text)):
		return "plain text", []string{"the message holds HTML: " + foreign.Clip(text, 80)}
	case strings.ContainsFunc(text, func(c rune) bool {
		return unicode.IsControl(c) && c != '\n' && c != '\t' && c != '\r' && !repeatsSent(r, string(c))
	}):
		return "readable text", []string{"the message holds control characters"}
	}
	return "", nil
}

// markup matches a page of HTML that was taken for a message.
var markup = regexp.MustCompile(`(?i)<!doctype|<(html|head|body|div|p|h[1-6]|pre|br|table)\b[^>]*>`)

// maxMessage is the length up to which an error message is readable.
const maxMessage = 1000

// internals are marks of stack traces, statements and paths (spec 5.2.4).
var internals = []struct {
	what string
	mark *regexp.Regexp
}{
	{"a stack trace", regexp.MustCompile(`(?i)traceback \(most recent call last\)|\n\s+at [\w.$<>]+ ?\(|goroutine \d+ \[|\.go:\d+ \+0x|File "[^"]+", line \d+|\bat [\w.$]+\([\w]+\.(java|kt|cs):\d+\)|node_modules/|(?m)^\s*from \S+\.rb:\d+`)},
	{"a database statement", regexp.MustCompile(`(?i)\b(select\s+.+\s+from|insert\s+into\s+\S+\s*\(|update\s+\S+\s+set|delete\s+from\s+\S+\s+where)\b|SQLSTATE\[?|ORA-\d{5}|psycopg2\.`)},
	{"a path of the server", regexp.MustCompile(`(?:^|[\s"'(])(?:/(?:home|usr|var|etc|opt|srv|app|root)/[\w./-]+|[A-Z]:\\[\w\\.-]+)`)},
	{"a secret", regexp.MustCompile(`(?i)\b(password|passwd|secret|api[_-]?key|access[_-]?token)\b\s*[=:]\s*\S{4,}`)},
}

// repeatsSent reports whether a text was sent: a message may name the value that is wrong.
func repeatsSent(r *reply, text string) bool {
	quoted := bytes.Trim(values.Quote(strings.Trim(text, " \"'(\n")), `"`)
	return bytes.Contains(bytes.ToLower(r.Request), bytes.ToLower(quoted))
}
