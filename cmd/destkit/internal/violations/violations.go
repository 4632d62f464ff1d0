// Package violations shows the rules that a simulator and a service can break on
// purpose, in one shape for both.
package violations

import (
	"io"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server"
)

// Print lists what can be broken on purpose.
func Print(w io.Writer, all []destsim.Violation, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(w, all)
	}
	for _, v := range all {
		foreign.Printf(w, "%-11s %s\n", v.ID, v.Changes)
		for _, also := range v.Also {
			foreign.Printf(w, "%-11s   also %s: %s\n", "", also.ID, also.Why)
		}
	}
	foreign.Printf(w, "%s\n", quantity.Count(len(all), "violation"))
	return nil
}

// OfService is a violation of the service in the shape of those of the
// simulator; neither of the two knows the other.
func OfService(v server.Violation) destsim.Violation {
	out := destsim.Violation{ID: v.ID, Changes: v.Changes, Also: []destsim.Also{}}
	for _, a := range v.Also {
		out.Also = append(out.Also, destsim.Also(a))
	}
	return out
}
