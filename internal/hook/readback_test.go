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
		"not complete":   {`{"records":[],"complete":false}`, KindIncomplete, "complete is false"},
		"no records":     {`{"complete":true}`, KindShape, "records is missing, not an array"},
		"records object": {`{"records":{},"complete":true}`, KindShape, "records is an object"},
		"no identifier":  {`{"records":[{"count":1,"fields":{}}],"complete":true}`, KindShape, "records[0].identifier is missing"},
		"bad identifier": {`{"records":[{"identifier":{},"count":1,"fields":{}}],"complete":true}`, KindShape, "records[0].identifier is an object"},
		"complete text":  {`{"records":[],"complete":"true"}`, KindShape, "complete is a string, not a boolean"},
		"record text":    {`{"records":["a"],"complete":true}`, KindShape, "records[0] is a string"},
		"rows":           {`[{"email":"a","name":"x"}]`, KindShape, "records[0].identifier is missing"},
		"an error":       {`{"error":"no such table"}`, KindRefused, "no such table"},
		"count NaN":      {`{"records":[{"identifier":"a","count":NaN,"fields":{}}]}`, KindShape, "records[0].count is NaN"},
		"count -1":       {`{"records":[{"identifier":"a","count":-1,"fields":{}}]}`, KindShape, "records[0].count is -1"},
		"count 0, there": {`{"records":[{"identifier":"a","count":0,"fields":{"x":1}}]}`, KindShape, "records[0].count is 0"},
		"again, counted": {`{"records":[{"identifier":"a","fields":{}},` + good + `]}`, KindShape, `records[1].identifier is "a" for the second time`},
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
			require.NotEmpty(t, failure(t, err).Fix, "the message says what to do")
		})
	}
}

func failure(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	return e
}

// TestWhatAReadbackIsForgiven: slips that cannot make an absent record look
// present or hide a second copy.
func TestWhatAReadbackIsForgiven(t *testing.T) {
	const a = `{"identifier":"a","count":1,"fields":{"x":1}}`
	cases := map[string]struct {
		reply string
		want  map[string]int // copies by key
	}{
		"no complete":           {`{"records":[` + a + `]}`, map[string]int{`"a"`: 1}},
		"complete is null":      {`{"records":[` + a + `],"complete":null}`, map[string]int{`"a"`: 1}},
		"a bare array":          {`[` + a + `]`, map[string]int{`"a"`: 1}},
		"a byte order mark":     {"\xef\xbb\xbf" + `{"records":[` + a + `]}`, map[string]int{`"a"`: 1}},
		"records is null":       {`{"records":null,"complete":true}`, map[string]int{}},
		"null for what is not":  {`{"records":[` + a + `,null]}`, map[string]int{`"a"`: 1}},
		"count 0 for the same":  {`{"records":[` + a + `,{"identifier":"b","count":0}]}`, map[string]int{`"a"`: 1}},
		"count 0, empty fields": {`{"records":[{"identifier":"b","count":0,"fields":{}}]}`, map[string]int{}},
		"no count":              {`{"records":[{"identifier":"a","fields":{}}]}`, map[string]int{`"a"`: 1}},
		"no count, each copy":   {`{"records":[{"identifier":"a","fields":{}},{"identifier":"b","fields":{}},{"identifier":"a","fields":{}}]}`, map[string]int{`"a"`: 2, `"b"`: 1}},
		"count as a text":       {`{"records":[{"identifier":"a","count":"2","fields":{}}]}`, map[string]int{`"a"`: 2}},
		"count as a float":      {`{"records":[{"identifier":"a","count":2.0,"fields":{}}]}`, map[string]int{`"a"`: 2}},
		"further members":       {`{"records":[{"identifier":"a","count":1,"fields":{},"id":7}],"took":3}`, map[string]int{`"a"`: 1}},
		"identifier as a text":  {`{"records":[{"identifier":"42","count":1,"fields":{}}]}`, map[string]int{`42`: 1}},
		"identifier as a float": {`{"records":[{"identifier":42.0,"count":1,"fields":{}}]}`, map[string]int{`42`: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec, client, _ := serve(t, 200, c.reply)
			reply, err := spec.Readback(client, time.Second)(t.Context(), asks(`"a"`, `"b"`, `42`))
			require.NoError(t, err)
			require.True(t, reply.Complete)
			got := map[string]int{}
			for _, r := range reply.Records {
				got[string(r.Identifier)] = r.Count
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestNumbersOfPython: what json.dumps writes for floats that are no JSON is read,
// shown as it is, and equal to no text.
func TestNumbersOfPython(t *testing.T) {
	spec, client, _ := serve(t, 200, `{"records":[{"identifier":"NaN","count":1,"fields":{`+
		`"a":Infinity,"b":-Infinity,"c": NaN ,"d":[1.5,NaN,"NaN"],"e":"-Infinity","f":"say \"NaN\", Infinity","destkitNaN":"destkitNaN"}}],"complete":true}`)
	reply, err := spec.Readback(client, time.Second)(t.Context(), asks(`"NaN"`))
	require.NoError(t, err)
	require.Len(t, reply.Records, 1)
	got := map[string]string{}
	for name, raw := range reply.Records[0].Fields {
		got[name] = string(raw)
	}
	require.Equal(t, map[string]string{
		"a": "Infinity", "b": "-Infinity", "c": "NaN", "d": `[1.5,NaN,"NaN"]`, "e": `"-Infinity"`,
		"f": `"say \"NaN\", Infinity"`, "destkitNaN": `"destkitNaN"`,
	}, got)
	for _, bad := range []string{`{"a":Infin}`, `{"a":Infinity1}`, `{"a":+Infinity}`, `{"a":nan}`, `{NaN:1}x`, `{"a":"`} {
		spec, client, _ := serve(t, 200, bad)
		_, err := spec.Readback(client, time.Second)(t.Context(), asks(`"a"`))
		require.Equal(t, KindNotJSON, KindOf(err), bad)
	}
}

func TestVerifyMatchesIdentifiersByValue(t *testing.T) {
	cases := []struct {
		name     string
		asked    []string
		answered string
		want     string // the requested text, "" for an error
	}{
		{"same", []string{`"a"`}, `"a"`, `"a"`},
		{"escaped", []string{`"\u00e9"`}, `"é"`, `"\u00e9"`},
		{"integer as text", []string{`42`}, `"42"`, `42`},
		{"text as integer", []string{`"42"`}, `42`, `"42"`},
		{"both asked, exact wins", []string{`42`, `"42"`}, `"42"`, `"42"`},
		{"other case", []string{`"a"`}, `"A"`, ``},
		{"NFD is not NFC", []string{`"é"`}, `"e\u0301"`, ``},
		{"integer as a float", []string{`42`, `43`}, `42.0`, `42`},
		{"float that is none of them", []string{`42`}, `42.5`, ``},
		{"integer in another base", []string{`42`}, `"0x2a"`, ``},
		{"integer with zeros", []string{`42`}, `"042"`, ``},
		{"rounded", []string{`9007199254740993`}, `9007199254740992.0`, ``},
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
