package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/destkit/destkit/server"
)

// A client under test talks to its own service, without a process.
func Example() {
	service, err := server.New(context.Background(), server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer service.Close()
	api := httptest.NewServer(service)
	defer api.Close()
	tokens, err := service.NewOrganization(context.Background(), "test 17")
	if err != nil {
		log.Fatal(err)
	}

	call := func(method, path, token, body string) {
		request, err := http.NewRequest(method, api.URL+path, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			log.Fatal(err)
		}
		fmt.Println(method, path, response.StatusCode)
	}
	call("POST", "/api/v1/sources", tokens.WorkspaceAPIKey, `{"connection":{"name":"Stream","type":"topic_log","credentials":{}}}`)
	if err := service.Clock().Advance(context.Background(), 24*time.Hour); err != nil {
		log.Fatal(err)
	}
	// The next list of sources is refused once.
	_, err = service.Faults().Arm(context.Background(), server.Fault{
		Kind: "rate_limited", RetryAfter: server.RetryIn(2), Trigger: server.Trigger{Operation: "listSources", FirstN: 1},
	})
	if err != nil {
		log.Fatal(err)
	}
	call("GET", "/api/v1/sources", tokens.WorkspaceAPIKey, "")
	call("GET", "/api/v1/sources", tokens.WorkspaceAPIKey, "")
	refused, err := service.Journal().Requests(context.Background(), server.JournalFilter{Status: "429"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("refused:", refused[0].Operation, refused[0].Faults)
	// Output:
	// POST /api/v1/sources 201
	// GET /api/v1/sources 429
	// GET /api/v1/sources 200
	// refused: listSources [fault_1]
}
