package service_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
	"github.com/destkit/destkit/server/api"
)

// A service is judged through its API, and by its calls of destinations that the
// caller hands in: simulators, and whatever listens for them.
func ExampleRun() {
	judged, err := server.New(context.Background(), server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer judged.Close()
	running := httptest.NewServer(judged)
	defer running.Close()
	tokens := judged.FirstTokens()

	report, err := service.Run(context.Background(), service.Target{
		BaseURL:             running.URL + api.BasePath,
		ControlURL:          running.URL + "/_control",
		PersonalAccessToken: tokens.PersonalAccessToken,
		WorkspaceAPIKey:     tokens.WorkspaceAPIKey,
	}, service.Options{
		Options: conformance.Options{Select: []string{"TOK-008"}},
		NewSimulator: func(c service.SimulatorConfig) (service.Simulator, error) {
			config := destsim.Config{Speed: c.Speed, RateLimit: -1}
			for _, o := range c.Objects {
				config.Objects = append(config.Objects, destsim.Described(o, c.Operations[o.APIName], c.Fields[o.APIName]))
			}
			return destsim.New(config)
		},
		Listen: func(_ *tls.Config, h http.Handler) (address string, stop func(), err error) {
			listening := httptest.NewServer(h)
			return listening.URL, listening.Close, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, check := range report.Checks {
		if check.ID == "TOK-008" {
			fmt.Println(check.Status)
		}
	}
	// Output: PASS
}
