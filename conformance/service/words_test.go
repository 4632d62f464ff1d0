package service

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
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
