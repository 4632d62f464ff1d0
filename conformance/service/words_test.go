package service

import (
	"testing"

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
	out, err := sc.spoken(`{"a":{"b":"{secret-a}"},"c":"{secret-b} {secret-a}"} /sources/{source}/x?u={url}&n={unknown}`)
	require.NoError(t, err)
	a, b := sc.words["secret-a"], sc.words["secret-b"]
	require.NotEqual(t, a, b)
	require.Equal(t, `{"a":{"b":"`+a+`"},"c":"`+b+` `+a+`"} /sources/3/x?u=http://127.0.0.1/x&n=2000000011`, out)
	require.Equal(t, "token $SECRET", sc.secrets.String("token "+a), "a secret does not get into a report")

	_, err = sc.spoken("{destination}")
	require.ErrorContains(t, err, "no destination yet")
	_, err = sc.spoken("{nonsense}")
	require.ErrorContains(t, err, "nothing stands for {nonsense}")
	require.Zero(t, sc.idOf("made"))
}

func TestWithoutURL(t *testing.T) {
	list := `{"data":[{"connection_details":{"webhook_url":"https://x/secret","api_version":1},"note":"https://x/secret"}]}`
	require.JSONEq(t, `{"data":[{"connection_details":{"api_version":1},"note":"https://x/secret"}]}`, string(withoutURL([]byte(list))))
	require.Equal(t, "<html>", string(withoutURL([]byte("<html>"))))
}

func TestTestThat(t *testing.T) {
	for _, words := range []string{
		`says "no"`, `lacks "success"`, "is answered with HTTP 500", "is answered with a page", "gets no answer", `fails with the error -32001 "key revoked"`,
	} {
		script, err := testThat(words)
		require.NoError(t, err, words)
		require.NotNil(t, script(&endpoint.Call{Method: "test_connection"}), words)
		require.Nil(t, script(&endpoint.Call{Method: "list_objects"}), words)
	}
	script, err := testThat("passes")
	require.NoError(t, err)
	require.Nil(t, script)
	_, err = testThat("fails somehow")
	require.ErrorContains(t, err, "fails somehow")
}
