package faults

import (
	"net/http"

	"github.com/destkit/destkit/server/internal/call"
)

// faultRoutes arm and take away faults.
func (f *Faults) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/faults", "makes a fault: kind (latency, status, rate_limited, drop), phase (before, after), and which calls it strikes", f.controlArm),
		call.Route("GET", "/faults", "lists the faults and how often they matched and fired", func(*call.Control) (any, error) {
			return faultList(f.All()), nil
		}),
		call.Route("GET", "/faults/unfired", "lists the faults that never fired", func(*call.Control) (any, error) {
			return faultList(f.Unfired()), nil
		}),
		call.Route("DELETE", "/faults", "takes all faults away and shows what became of them", func(*call.Control) (any, error) {
			return faultList(f.Forget()), nil
		}),
		call.Route("DELETE", "/faults/{id}", "takes one fault away and shows what became of it", func(c *call.Control) (any, error) {
			return f.Disarm(c.R.PathValue("id"))
		}),
	}
}

// faultList is an object, so that the reply can grow.
func faultList(list []ArmedFault) any { return map[string]any{"faults": list} }

// controlArm answers with the fault as it is in force, defaults filled in.
func (f *Faults) controlArm(c *call.Control) (any, error) {
	var fault Fault
	if err := c.Body(&fault); err != nil {
		return nil, err
	}
	armed, err := f.Arm(fault)
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, armed), nil
}
