package destination

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// timeSteps judge deadlines, stalls, and what errors say.
func timeSteps() []definition {
	return []definition{
		step(`^every reply arrives (within the planning deadline|within the batch deadline|without a stall)$`, func(sc *scenario) any { return sc.arrives }),
		step(`^the service sends what processes have died of$`, func(sc *scenario) any { return sc.sendsWhatIsDeadly }),
		step(`^the endpoint has (accepted connections all the time|answered every call when it was made)$`, func(sc *scenario) any {
			return func(claim string) error {
				if claim == "accepted connections all the time" {
					return sc.stayedUp()
				}
				return sc.answeredFirst()
			}
		}),
		step(`^every call is answered$`, func(sc *scenario) any { return sc.everyCallAnswered }),
	}
}

func (sc *scenario) arrives(claim string) error {
	limit := sc.opts.PlanningTimeout
	if claim == "within the batch deadline" {
		limit = sc.opts.BatchTimeout
	}
	for _, r := range sc.replies {
		if claim == "without a stall" {
			if r.Status != 0 && r.MaxGap > sc.opts.PlanningTimeout/2 {
				sc.broken("a body that comes without long pauses", fmt.Sprintf("%s: the body stood still for %s", r.What(), exchange.Round(r.MaxGap)), r)
			}
			continue
		}
		if r.Kind == wire.KindTimeout || r.Total > limit {
			sc.broken(fmt.Sprintf("a complete reply within %s", limit), fmt.Sprintf("%s: nothing complete after %s", r.What(), exchange.Round(r.Total)), r)
		}
	}
	if err := sc.held(); err != nil {
		return err
	}
	if reached := sc.measured.reached; reached != nil && *reached < 0.9 {
		return inconclusive("a load test", "the judge reached only %.0f %% of the declared rate", *reached*100)
	}
	return nil
}

// everyCallAnswered judges the good calls that follow disturbed ones.
func (sc *scenario) everyCallAnswered() error {
	for _, r := range sc.replies {
		if r.Method != rpc.MethodListObjects || r.Status >= 300 && r.Status <= 399 {
			continue // HTTP-004 judges redirects
		}
		if r.Passing() && !sc.Confirming() {
			return wire.ErrAway // which may pass: judged once more, alone
		}
		if expected, actual := sameID(r); actual != "" {
			sc.broken(expected+": the answer to this call", actual, r)
		} else if r.Member("result") == nil && r.Member("error") == nil {
			sc.broken("an answer to a good call", r.Short(), r)
		}
	}
	return sc.held()
}

// markup tells a page of HTML that was taken for a message.
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

func (sc *scenario) errorText(claim string) error {
	for _, r := range sc.replies {
		if !r.IsError() {
			continue
		}
		e := r.Member("error")
		text := r.WholeErrorText()
		if claim == "reveals nothing internal" {
			whole := text
			if data := e.Get("data"); data != nil {
				whole += "\n" + exchange.NodeText(data) + "\n" + strings.ReplaceAll(string(data.Raw), `\n`, "\n")
			}
			for _, i := range internals {
				if m := i.mark.FindString(whole); m != "" && !repeatsSent(r, m) {
					sc.broken("an error that tells the caller what to do, without internals", fmt.Sprintf("%s: %s: %s", r.What(), i.what, foreign.Clip(m, 120)), r)
				}
			}
			continue
		}
		switch {
		case strings.TrimSpace(text) == "":
			sc.broken("a short readable message", r.What()+": the message is empty", r)
		case utf8.RuneCountInString(text) > maxMessage && repeatsSent(r, strings.ToValidUTF8(text[len(text)/2:len(text)/2+100], "")): // a long value
		case utf8.RuneCountInString(text) > maxMessage:
			sc.broken(fmt.Sprintf("a message of at most %d characters", maxMessage), fmt.Sprintf("%s: %s", r.What(), quantity.Count(utf8.RuneCountInString(text), "character")), r)
		case !strings.ContainsFunc(text, unicode.IsLetter):
			sc.broken("readable text", fmt.Sprintf("%s: the message has no word: %s", r.What(), foreign.Clip(text, 80)), r)
		case markup.MatchString(text) && !repeatsSent(r, markup.FindString(text)):
			sc.broken("plain text", r.What()+": the message holds HTML: "+foreign.Clip(text, 80), r)
		case strings.ContainsFunc(text, func(c rune) bool {
			return unicode.IsControl(c) && c != '\n' && c != '\t' && c != '\r' && !repeatsSent(r, string(c))
		}):
			sc.broken("readable text", r.What()+": the message holds control characters", r)
		}
	}
	return sc.held()
}

// repeatsSent reports whether a text of an error is one that was sent: a message may name the
// value that is wrong.
func repeatsSent(r *reply, text string) bool {
	quoted := bytes.Trim(values.Quote(strings.Trim(text, " \"'(\n")), `"`)
	return bytes.Contains(bytes.ToLower(r.Request), bytes.ToLower(quoted))
}

func (sc *scenario) notesProtocol() error {
	sc.note("judged against the custom destination protocol v1 with the profile %s; deadlines: planning %s, batch %s (policy)",
		sc.opts.Profile, sc.opts.PlanningTimeout, sc.opts.BatchTimeout)
	return nil
}
