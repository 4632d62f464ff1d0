package rpc_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/destkit/destkit/destsim/rpc"
)

// A client fetches the objects of an endpoint; the endpoint here answers with what the
// package offers to those who write one.
func ExampleClient() {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		request, err := rpc.DecodeRequest(body)
		if err != nil || request.Method != rpc.MethodListObjects {
			_, _ = w.Write(rpc.AppendError(nil, request.RawID, &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "no such method"}))
			return
		}
		_, _ = w.Write(rpc.AppendResponse(nil, request.RawID, []byte(`{"objects":[{"object_api_name":"contact","label":"Contacts"}]}`)))
	}))
	defer endpoint.Close()

	client := rpc.Client{URL: endpoint.URL, Token: "secret"}
	objects, err := client.ListObjects(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range objects {
		fmt.Println(o.APIName, o.Label)
	}
	// Output: contact Contacts
}
