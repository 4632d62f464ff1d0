package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func asks(identifiers ...string) ReadbackRequest {
	request := ReadbackRequest{Object: "contact", IdentifierField: "email"}
	for _, text := range identifiers {
		request.Identifiers = append(request.Identifiers, json.RawMessage(text))
	}
	return request
}

func TestReadbackSendsThePublishedShape(t *testing.T) {
	spec, client, last := serve(t, 200, `{"records":[{"identifier":9007199254740993,"count":2,"fields":{"a":null,"n":1e400},"x":1}],"complete":true,"y":2}`)
	reply, err := spec.Readback(client, time.Second)(t.Context(), asks(`"a@x"`, `9007199254740993`))
	require.NoError(t, err)
	require.Equal(t, `POST application/json {"object":"contact","identifier_field":"email","identifiers":["a@x",9007199254740993]}`, last())
	require.True(t, reply.Complete)
	require.Len(t, reply.Records, 1)
	require.Equal(t, "9007199254740993", string(reply.Records[0].Identifier))
	require.Equal(t, 2, reply.Records[0].Count)
	require.Equal(t, "1e400", string(reply.Records[0].Fields["n"]), "values stay raw")

	_, err = spec.Readback(client, time.Second)(t.Context(), ReadbackRequest{Object: "contact"})
	require.Error(t, err)
	require.Contains(t, last(), `"identifiers":[]`)
}

func TestReadbackRepliesThatAreWrong(t *testing.T) {
	const good = `{"identifier":"a","count":1,"fields":{}}`
	cases := map[string]struct {
		reply string
		kind  Kind
		want  string
	}{
		"no complete":    {`{"records":[]}`, KindShape, "complete is missing"},
		"null complete":  {`{"records":[],"complete":null}`, KindShape, "complete is null"},
		"not complete":   {`{"records":[],"complete":false}`, KindIncomplete, "complete is false"},
		"no records":     {`{"complete":true}`, KindShape, "records is missing, not an array"},
		"records object": {`{"records":{},"complete":true}`, KindShape, "records is an object"},
		"record null":    {`{"records":[null],"complete":true}`, KindShape, "records[0] is null"},
		"no identifier":  {`{"records":[{"count":1,"fields":{}}],"complete":true}`, KindShape, "records[0].identifier is missing"},
		"bad identifier": {`{"records":[{"identifier":{},"count":1,"fields":{}}],"complete":true}`, KindShape, "records[0].identifier is an object"},
		"no count":       {`{"records":[{"identifier":"a","fields":{}}],"complete":true}`, KindShape, "records[0].count is missing"},
		"count 0":        {`{"records":[{"identifier":"a","count":0,"fields":{}}],"complete":true}`, KindShape, "records[0].count is 0"},
		"count 1.5":      {`{"records":[{"identifier":"a","count":1.5,"fields":{}}],"complete":true}`, KindShape, "records[0].count is 1.5"},
		"no fields":      {`{"records":[` + good + `,{"identifier":"b","count":1}],"complete":true}`, KindShape, "records[1].fields is missing"},
		"fields array":   {`{"records":[{"identifier":"a","count":1,"fields":[]}],"complete":true}`, KindShape, "records[0].fields is an array"},
		"field twice":    {`{"records":[{"identifier":"a","count":1,"fields":{"x":1,"x":2}}],"complete":true}`, KindShape, `records[0].fields has the member "x" twice`},
		"not asked":      {`{"records":[{"identifier":"A","count":1,"fields":{}}],"complete":true}`, KindUnasked, `records[0].identifier is "A", which was not asked for`},
		"same key twice": {`{"records":[` + good + `,` + good + `],"complete":true}`, KindShape, `records[1].identifier is "a" for the second time`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec, client, _ := serve(t, 200, c.reply)
			_, err := spec.Readback(client, time.Second)(t.Context(), asks(`"a"`, `"b"`))
			require.Equal(t, c.kind, KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestVerifyMatchesIdentifiersByValue(t *testing.T) {
	cases := []struct {
		name     string
		asked    []string
		answered string
		want     string // the asked text, "" for an error
	}{
		{"same", []string{`"a"`}, `"a"`, `"a"`},
		{"escaped", []string{`"\u00e9"`}, `"é"`, `"\u00e9"`},
		{"integer as text", []string{`42`}, `"42"`, `42`},
		{"text as integer", []string{`"42"`}, `42`, `"42"`},
		{"both asked, exact wins", []string{`42`, `"42"`}, `"42"`, `"42"`},
		{"other case", []string{`"a"`}, `"A"`, ``},
		{"NFD is not NFC", []string{`"é"`}, `"e\u0301"`, ``},
		{"rounded", []string{`9007199254740993`}, `9007199254740992`, ``},
		{"lone surrogates differ", []string{`"\ud800"`}, `"\ud801"`, ``},
		{"lone surrogate", []string{`"\ud800"`}, `"\ud800"`, `"\ud800"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			reply, err := Verify(asks(c.asked...), ReadbackReply{Complete: true, Records: []ReadbackRecord{{Identifier: json.RawMessage(c.answered), Count: 1}}})
			if c.want == "" {
				require.Equal(t, KindUnasked, KindOf(err))
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, string(reply.Records[0].Identifier))
		})
	}
	_, err := Verify(asks(`1`), ReadbackReply{Complete: true, Records: []ReadbackRecord{{Identifier: json.RawMessage(`1`)}}})
	require.ErrorContains(t, err, "count is 0", "a Go function is verified like the others")
}

func TestPagedAsksEveryValueOnce(t *testing.T) {
	request := asks()
	for n := range 2500 {
		request.Identifiers = append(request.Identifiers, json.RawMessage(fmt.Sprint(n%2400)))
	}
	var sizes []int
	paged := Paged(func(_ context.Context, page ReadbackRequest) (ReadbackReply, error) {
		require.Equal(t, "contact", page.Object)
		sizes = append(sizes, len(page.Identifiers))
		reply := ReadbackReply{Complete: true}
		for _, raw := range page.Identifiers {
			reply.Records = append(reply.Records, ReadbackRecord{Identifier: raw, Count: 1})
		}
		return reply, nil
	})
	reply, err := paged(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, []int{1000, 1000, 400}, sizes)
	require.Len(t, reply.Records, 2400)

	reply, err = paged(t.Context(), asks())
	require.NoError(t, err)
	require.True(t, reply.Complete)
	require.NotNil(t, reply.Records)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = paged(ctx, request)
	require.ErrorIs(t, err, context.Canceled)

	lying := Paged(func(context.Context, ReadbackRequest) (ReadbackReply, error) { return ReadbackReply{}, nil })
	_, err = lying(t.Context(), request)
	require.Equal(t, KindIncomplete, KindOf(err))
}
