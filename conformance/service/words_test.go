package service

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
)

func TestWords(t *testing.T) {
	sc := &scenario{
		run:   &run{opts: &Options{Options: conformance.Options{RunID: "tests"}}, secrets: wire.NewRedactor()},
		words: map[string]string{"url": "http://127.0.0.1/x"}, source: 3,
	}
	out := sc.filled(`{"a":{"b":"{secret_a}"},"c":"{secret_b} {secret_a}"} /sources/{source}/x?u={url}&n={nobody} {{ record }}`)
	a, b := sc.words["secret_a"], sc.words["secret_b"]
	require.NotEqual(t, a, b)
	require.Equal(t, `{"a":{"b":"`+a+`"},"c":"`+b+` `+a+`"} /sources/3/x?u=http://127.0.0.1/x&n=2000000011 {{ record }}`, out)
	require.Equal(t, "token $SECRET", sc.secrets.String("token "+a), "a secret does not get into a report")

	for _, word := range []string{"{destination}", "{sync}", "{nonsense}", "{this_nonsense}"} {
		err := caught(func() { sc.filled(word) })
		require.ErrorContains(t, err, "nothing stands for "+word)
	}
}

func TestWithoutURL(t *testing.T) {
	list := `{"data":[{"connection_details":{"webhook_url":"https://x/secret","api_version":1},"note":"https://x/secret"}]}`
	require.JSONEq(t, `{"data":[{"connection_details":{"api_version":1},"note":"https://x/secret"}]}`, string(withoutURL([]byte(list))))
	require.Equal(t, "<html>", string(withoutURL([]byte("<html>"))))
}

// TestGivenUp: a verdict is never between two moments that are close together. The
// whole suite is judged with deadlines that agree (serveImpatient).
func TestGivenUp(t *testing.T) {
	const known, held = 3 * time.Second, 6 * time.Second
	require.Equal(t, held, known+2*room(known))
	for name, c := range map[string]struct {
		known     time.Duration
		took      time.Duration
		aborted   bool
		broken    bool
		undecided string
	}{
		"before":                 {known: known, took: time.Second, aborted: true},
		"at the same moment":     {known: known, took: known, aborted: true},
		"a moment after":         {known: known, took: known + 900*time.Millisecond, aborted: true},
		"late":                   {known: known, took: known + 2*time.Second, aborted: true, undecided: "gave the request up after 5s, which is later than 3s and not by much"},
		"as the judge answers":   {known: known, took: held, aborted: true, undecided: "after 6s, which is later than 3s"},
		"never":                  {known: known, took: held, broken: true},
		"nobody knows":           {took: time.Minute, aborted: true},
		"nobody knows, answered": {took: shortHold, undecided: "the service waits for longer than 6s: say with --request-timeout how long it may"},
	} {
		call := &endpoint.Call{Came: time.Now(), Aborted: c.aborted, Done: true}
		call.Ended = call.Came.Add(c.took)
		broken, err := waitedOn(call, c.known, held)
		require.Equal(t, c.broken, broken, name)
		if c.undecided == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.undecided, name)
		}
	}
}
