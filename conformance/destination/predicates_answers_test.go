package destination

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// answer is a reply written by hand; $id in it is the id of the request.
type answer func(a *asked) *wire.Reply

// body answers status 200 with a text that is labelled as JSON.
func body(text string) answer {
	return func(a *asked) *wire.Reply {
		b := []byte(strings.ReplaceAll(text, "$id", a.rawID))
		return &wire.Reply{
			Status: 200, Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {"application/json"}},
			RawHeaders: []wire.Header{{Name: "Content-Type", Value: "application/json"}}, Body: b, Raw: b, Request: a.Body,
		}
	}
}

// gives answers with a result, failure with an error.
func gives(text string) answer { return body(`{"jsonrpc":"2.0","id":$id,"result":` + text + `}`) }

func failure(code int, message string) answer {
	return body(fmt.Sprintf(`{"jsonrpc":"2.0","id":$id,"error":{"code":%d,"message":%s}}`, code, quote(message)))
}

// page answers with a status and a text that is no envelope.
func page(status int, text string) answer { return body(text).status(status) }

// broken is an exchange without a complete response.
func broken(kind wire.Kind) answer {
	return func(a *asked) *wire.Reply {
		return &wire.Reply{Kind: kind, Err: &wire.Error{Kind: kind, Op: "read response: " + string(kind)}, Header: http.Header{}, Request: a.Body}
	}
}

func (a answer) with(change func(r *wire.Reply)) answer {
	return func(q *asked) *wire.Reply {
		r := a(q)
		change(r)
		return r
	}
}

func (a answer) status(n int) answer { return a.with(func(r *wire.Reply) { r.Status = n }) }

func (a answer) after(d time.Duration) answer { return a.with(func(r *wire.Reply) { r.Total = d }) }

// header adds a line; an empty value removes the name.
func (a answer) header(name, value string) answer {
	return a.with(func(r *wire.Reply) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		if name == "Content-Type" {
			r.Header.Del(name)
		}
		r.Header.Add(name, value)
		r.RawHeaders = append(r.RawHeaders, wire.Header{Name: name, Value: value})
	})
}

// ends gives a complete-looking response another end.
func (a answer) ends(kind wire.Kind) answer {
	return a.with(func(r *wire.Reply) {
		r.Kind, r.Err = kind, &wire.Error{Kind: kind, Op: "read response: " + string(kind)}
	})
}

// inTurn answers the first call of a name by the first answer and so on; the
// last one stands for the rest.
func inTurn(answers ...answer) answer {
	return func(a *asked) *wire.Reply { return answers[min(a.turn, len(answers)-1)](a) }
}

// first answers the first n calls of a name one way and all others another.
func first(n int, one, other answer) answer {
	return func(a *asked) *wire.Reply {
		if a.turn < n {
			return one(a)
		}
		return other(a)
	}
}

// when answers calls that fit one way and all others another.
func when(fits func(a *asked) bool, one, other answer) answer {
	return func(a *asked) *wire.Reply {
		if fits(a) {
			return one(a)
		}
		return other(a)
	}
}

// The record results that most talks need; $id is the identifier of the record.
const (
	acknowledged = `{"identifier":$id,"success":true}`
	refusal      = `{"identifier":$id,"success":false,"error_message":"record not present"}`
	missing      = ""
)

// results answers a batch record by record; the last text stands for the rest.
func results(texts ...string) answer {
	return func(a *asked) *wire.Reply {
		out := []string{}
		for i, r := range a.records {
			id := string(r[a.active])
			if id == "" {
				id = "null"
			}
			if text := texts[min(i, len(texts)-1)]; text != missing {
				out = append(out, strings.ReplaceAll(text, "$id", id))
			}
		}
		return gives(`{"record_results":[` + strings.Join(out, ",") + `]}`)(a)
	}
}
