package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/destkit/destkit/server"
)

// A client under test talks to a service of its own: a process is not needed.
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
	call("POST", "/_control/clock", "", `{"advance":"24h"}`)
	call("POST", "/_control/faults", "", `{"kind":"rate_limited","operation":"listSources","retry_after":"2","first_n":1}`)
	call("GET", "/api/v1/sources", tokens.WorkspaceAPIKey, "")
	call("GET", "/api/v1/sources", tokens.WorkspaceAPIKey, "")
	call("POST", fmt.Sprintf("/_control/organizations/%d/reset", tokens.OrganizationID), "", "")
	// Output:
	// POST /api/v1/sources 201
	// POST /_control/clock 200
	// POST /_control/faults 201
	// GET /api/v1/sources 429
	// GET /api/v1/sources 200
	// POST /_control/organizations/2/reset 200
}
