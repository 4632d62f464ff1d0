package proxy_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/proxy"
)

// A test lets its calls go through a proxy, which judges the endpoint by them.
func Example() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":"another","result":{"success":true}}`)
	}))
	defer endpoint.Close()
	passive, err := destination.NewPassive(destination.Target{URL: endpoint.URL}, conformance.Options{})
	if err != nil {
		log.Fatal(err)
	}
	recorder, err := proxy.NewRecorder(proxy.RecorderConfig{Passive: passive})
	if err != nil {
		log.Fatal(err)
	}
	p, err := proxy.New(proxy.Config{To: endpoint.URL, Observer: recorder})
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = p.Serve(context.Background(), ln) }()

	call := `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"7"}`
	response, err := http.Post("http://"+ln.Addr().String(), "application/json", strings.NewReader(call))
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	fmt.Println(string(text))
	ln.Close()
	p.Close() // waits until all that went by is judged
	for _, check := range passive.Report().Checks {
		for _, finding := range check.Findings {
			fmt.Println(check.ID, finding.Rule)
		}
	}
	// Output:
	// {"jsonrpc":"2.0","id":"another","result":{"success":true}}
	// RPC-003 Every reply has the id of its request
}
