package serve

import (
	"io"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/openapi"
)

// explainDialect lists the switches between the dialects.
func explainDialect(w io.Writer, asJSON bool) error {
	// From the OpenAPI document, which a test holds against the code.
	differences := openapi.Differences()
	if asJSON {
		return command.PrintJSON(w, differences)
	}
	for _, d := range differences {
		foreign.Printf(w, "%s\n  spec    %s\n  live    %s\n  source  %s\n  at      %s\n", d.Name, d.Spec, d.Live, d.Source, strings.Join(d.Places, ", "))
	}
	foreign.Printf(w, "%s\n", quantity.Count(len(differences), "difference"))
	return nil
}
