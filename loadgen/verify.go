package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// HookSpec locates the read-back hook: a URL or a command.
type HookSpec = hook.Spec

// Verify reads back acknowledged records, through the hook that the judge calls, too:
// after the load, so that its figures do not change, and before the clean-up.
type Verify struct {
	// Hook or Func; one of them. Func is a conformance.ReadbackFunc.
	Hook HookSpec
	Func hook.Readback
	// Share of the keys, 0 to 1. 0: one in a hundred, 1,000 at least and 100,000 at
	// most.
	Share float64
	// Window is how long a read-back may lag behind an acknowledgement; 0: not at all.
	Window time.Duration
	// Timeout of one call; 10 s when 0.
	Timeout time.Duration
}

func (v *Verify) check() error {
	switch {
	case v.Func == nil && !v.Hook.Set():
		return wire.Usagef("a verification needs a read-back hook: --readback-url URL or --readback-command COMMAND")
	case v.Func != nil && v.Hook.Set():
		return wire.Usagef("a verification has one read-back hook: a function, a URL or a command")
	case !(v.Share >= 0 && v.Share <= 1):
		return wire.Usagef("the share of keys to verify must be from 0 to 1, not %v", v.Share)
	case v.Window < 0 || v.Window > time.Hour:
		return wire.Usagef("the window of a read-back must be from 0 to 1 hour, not %s", v.Window)
	}
	return nil
}

// readback is the hook, for at most PageSize keys per call.
func (v *Verify) readback(e *wire.Endpoint) hook.Readback {
	ask := v.Func
	if ask == nil {
		transport, _ := e.RoundTripper()
		client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		ask = v.Hook.Readback(client, v.Timeout)
	}
	return hook.Paged(ask)
}

// probe queries the hook for a key that was never used, before anything is written: it
// must answer, and that there is none.
func (s *session) probe(ctx context.Context) error {
	v := s.o.Verify
	if v == nil {
		return nil
	}
	ask := v.readback(s.e.end)
	for _, g := range s.e.plan.grounds {
		key := s.e.plan.unusedKey(g)
		reply, err := ask(ctx, hook.ReadbackRequest{Object: g.object.APIName, IdentifierField: g.object.Identifier.APIName, Identifiers: []json.RawMessage{key}})
		// A range that was given may have been used before.
		if err == nil && len(reply.Records) > 0 && s.e.plan.keys.Count(g.object.Identifier.Type == rpc.TypeInteger) >= records.IntegerKeys {
			err = fmt.Errorf("call hook readback: it shows the key %s of %s, which was never used: let it answer only keys that are stored", key, g.object.APIName)
		}
		if err != nil {
			return errors.New(s.e.end.Redact(err.Error()) + "; nothing was written")
		}
	}
	return nil
}

// unusedKey is the last key of the run, which no run comes to.
func (p *plan) unusedKey(g *keyspace) json.RawMessage {
	if g.object.Identifier.Type == rpc.TypeInteger {
		return json.RawMessage(strconv.FormatInt(p.keys.To, 10))
	}
	return rawjson.AppendString(nil, p.keys.Text(p.keys.Count(false)-1))
}

// Verification is what was read back. Its findings are among the errors of the result.
type Verification struct {
	// Keys were written by the run; Share of them, 0 to 1, was chosen. Chosen counts
	// those of them that were acknowledged.
	Keys   int64   `json:"keys"`
	Share  float64 `json:"share"`
	Chosen int64   `json:"chosen"`
	// Verified keys were read back and compared; the rest is Unverified, with reasons.
	Verified   int64        `json:"verified"`
	Unverified []Unverified `json:"unverified"`
	// What was wrong, in keys.
	Lost      int64 `json:"lost"`
	Wrong     int64 `json:"wrong"`
	Doubled   int64 `json:"doubled"`
	Undeleted int64 `json:"undeleted"`
	// Seconds that it took, after the load.
	Seconds float64 `json:"seconds"`
}

// Unverified says why so many of the chosen keys could not be verified.
type Unverified struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// Findings counts what was wrong.
func (v *Verification) Findings() int64 { return v.Lost + v.Wrong + v.Doubled + v.Undeleted }

// Excluded is the share of lost keys that a sample without one excludes at 95 %: by the
// rule of three, 3 of n. 0 where all keys were verified, or one was lost.
func (v *Verification) Excluded() float64 {
	if v.Lost > 0 || v.Verified == 0 || v.Verified >= v.Keys {
		return 0
	}
	return min(3/float64(v.Verified), 1)
}

// Text is the verification in one line.
func (v *Verification) Text() string {
	text := v.counts()
	if share := v.Excluded(); share > 0 {
		text += fmt.Sprintf("; 0 of %s lost: less than %.2g %% of all at 95 %%", quantity.Grouped(v.Verified), 100*share)
	}
	return text
}

func (v *Verification) counts() string {
	return fmt.Sprintf("%s of %s that were chosen (%.3g %% of %s): %s lost, %s wrong, %s doubled, %s not deleted",
		quantity.Grouped(v.Verified), quantity.Counted(v.Chosen, "acknowledged key"), 100*v.Share, quantity.Grouped(v.Keys), quantity.Grouped(v.Lost), quantity.Grouped(v.Wrong), quantity.Grouped(v.Doubled), quantity.Grouped(v.Undeleted))
}

// add joins the verification of another generator.
func (v *Verification) add(o *Verification) {
	if keys := v.Keys + o.Keys; keys > 0 {
		v.Share = (v.Share*float64(v.Keys) + o.Share*float64(o.Keys)) / float64(keys)
	}
	v.Keys, v.Chosen, v.Verified, v.Seconds = v.Keys+o.Keys, v.Chosen+o.Chosen, v.Verified+o.Verified, max(v.Seconds, o.Seconds)
	v.Lost, v.Wrong, v.Doubled, v.Undeleted = v.Lost+o.Lost, v.Wrong+o.Wrong, v.Doubled+o.Doubled, v.Undeleted+o.Undeleted
	for _, u := range o.Unverified {
		at := slices.IndexFunc(v.Unverified, func(have Unverified) bool { return have.Reason == u.Reason })
		if at < 0 {
			v.Unverified = append(v.Unverified, u)
		} else {
			v.Unverified[at].Count += u.Count
		}
	}
}

// verification is what was read back, or nothing.
func (r *Result) verification() Verification {
	if r.Verification == nil {
		return Verification{}
	}
	return *r.Verification
}
