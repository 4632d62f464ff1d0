package xk6

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/loadgen"
)

// TestWrongOptionsNameTheField checks the errors that a script gets.
func TestWrongOptionsNameTheField(t *testing.T) {
	v := newVU(t, New(), nil)
	for _, c := range []struct{ url, options, want string }{
		{"https://h/", `undefined`, "object: name the object"},
		{"https://h/", `'contact'`, "the options must be an object"},
		{"https://h/", `{object: 'contact'}`, "write: a load writes records"},
		{"https://h/", `{object: 'contact', write: 'true'}`, `write: it must be true or false, not "true"`},
		{"https://h/", `{object: 'contact', write: false}`, "say so with write: true"},
		{"https://h/", `{object: 'contact', write: true, batchsize: 1}`, "batchsize: there is no such option; there are batchSize,"},
		{"https://h/", `{object: 'contact', write: true, batchSize: 0}`, "batchSize: it must be a whole number from 1 to 1000000"},
		{"https://h/", `{object: 'contact', write: true, batchSize: 1.5}`, "batchSize:"},
		{"https://h/", `{object: 'contact', write: true, batchSize: 'many'}`, `batchSize: it must be a whole number from 1 to 1000000, not "many"`},
		{"https://h/", `{object: '', write: true}`, "object: a name is empty"},
		{"https://h/", `{object: 7, write: true}`, "object: it must be a name"},
		{"https://h/", `{object: {contact: -1}, write: true}`, `object: the weight of "contact"`},
		{"https://h/", `{object: ['a', 'a'], operation: {upsert: 0}, write: true}`, `operation: the weight of "upsert"`},
		{"https://h/", `{object: 'contact', write: true, token: 12345678}`, "token: it must be a text"},
		{"https://h/", `{object: 'contact', write: true, headers: {a: 1}}`, "headers: a must be a text"},
		{"https://h/", `{object: 'contact', write: true, headers: {Host: 'x', 'Content-Length': '1'}}`, `the header "Content-Length"`},
		{"https://h/", `{object: 'contact', write: true, fields: 'age'}`, "fields: they must be a list"},
		{"https://h/", `{object: 'contact', write: true, fields: []}`, "fields: they must be a list"},
		{"https://h/", `{object: 'contact', write: true, template: 7}`, "template: it must be an object"},
		{"https://h/", `{object: 'contact', write: true, repeatKeys: 2}`, "repeatKeys: it must be a number from 0 to 1"},
		{"https://h/", `{object: 'contact', write: true, keyRange: [9, 1]}`, "keyRange: it must be two whole numbers"},
		{"https://h/", `{object: 'contact', write: true, keyTemplate: 'x'}`, `the key template "x" has no {n}`},
		{"https://h/", `{object: 'contact', write: true, timeout: 'soon'}`, "timeout: it must be milliseconds"},
		{"https://h/", `{object: 'contact', write: true, timeout: -1}`, "timeout: it must be milliseconds"},
		{"https://h/", `{object: 'contact', write: true, ca: '/etc/ca.pem'}`, "ca: it must hold certificates in PEM"},
		{"https://h/", `{object: 'contact', write: true, insecure: 1}`, "insecure: it must be true or false"},
		{"https://h/", `{object: 'contact', write: true, proxy: 'nowhere'}`, "the proxy must be a URL"},
		{"ftp://h/", `{object: 'contact', write: true}`, "must start with https://"},
		{"https:///", `{object: 'contact', write: true}`, "the URL of the endpoint has no host: https://HOST/PATH"},
		{"http://example.com/", `{object: 'contact', write: true}`, "(insecure: true sends anyway)"},
	} {
		_, err := v.run(fmt.Sprintf("destkit.destination(%q, %s)", c.url, c.options))
		require.ErrorContains(t, err, c.want, c.options)
		require.ErrorContains(t, err, "destination: ", c.options)
		require.NotContains(t, err.Error(), "--", "%s: a flag that scripts do not have", c.options)
		require.NotContains(t, err.Error(), "12345678", "a secret")
	}
}

// Every option has its effect.
func TestOptionsReachTheClient(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	given := map[string]any{
		"token": "t0ken", "headers": map[string]any{"X-A": "1"}, "ca": ca, "insecure": false,
		"object": []any{"contact", "order"}, "operation": map[string]any{"upsert": int64(9), "delete": 0.5}, "write": true,
		"batchSize": "100", "fields": []any{"age"}, "identifier": "email", "template": map[string]any{"age": int64(1)},
		"repeatKeys": 0.25, "prime": int64(50), "maxRecords": int64(1000), "run": "night", "seed": int64(7),
		"keyTemplate": "k-{run}-{n}", "keyRange": []any{int64(1000), int64(1999)}, "timeout": "5s",
		"compress": true, "newConnections": true, "standardClient": true, "http2": true, "proxy": "http://p:1",
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(options)), slices.Collect(maps.Keys(given)), "this test has every option")
	c, err := newConfig("https://h/", given)
	require.NoError(t, err)
	require.NotNil(t, c.options.Target.Roots)
	c.options.Target.Roots = nil
	require.Equal(t, loadgen.Options{
		Target: loadgen.Target{URL: "https://h/", Token: "t0ken", Headers: map[string]string{"X-A": "1"}, Development: "off"},
		Transport: loadgen.Transport{
			Standard: true, HTTP2: true, Proxy: "http://p:1", Reconnect: true, Compress: true, Timeout: 5 * time.Second,
		},
		Write: true, Closed: true, Version: "k6",
		Work: loadgen.Work{
			Objects:    []loadgen.Share{{Name: "contact"}, {Name: "order"}},
			Operations: []loadgen.Share{{Name: "delete", Weight: 0.5}, {Name: "upsert", Weight: 9}},
			BatchSize:  100, Fields: []string{"age"}, Identifier: "email", Repeats: 0.25, Prime: 50, Template: []byte(`{"age":1}`),
		},
		MaxRecords: 1000, RunID: "night", Seed: 7, KeyTemplate: "k-{run}-{n}", KeyFrom: 1000, KeyTo: 1999,
	}, c.options)
	// An undefined value, such as an unset variable, counts as missing.
	_, err = newConfig("https://h/", map[string]any{"object": "contact", "write": true, "run": nil, "timeout": nil})
	require.NoError(t, err)
}
