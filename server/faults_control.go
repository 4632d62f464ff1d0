package server

import "net/http"

// faultRoutes arm and take away faults.
func (s *Server) faultRoutes() []controlRoute {
	return []controlRoute{
		{"POST", "/faults", "makes a fault: kind (latency, status, rate_limited, drop), phase (before, after), and which calls it strikes", s.controlArm},
		{"GET", "/faults", "lists the faults and how often they matched and fired", func(c *controlCall) (any, error) {
			return faultList(s.faults.all(c.r.Context()))
		}},
		{"GET", "/faults/unfired", "lists the faults that never fired", func(c *controlCall) (any, error) {
			return faultList(s.faults.unfired(c.r.Context()))
		}},
		{"DELETE", "/faults", "takes all faults away and shows what became of them", func(c *controlCall) (any, error) {
			return faultList(s.faults.forget(c.r.Context()))
		}},
		{"DELETE", "/faults/{id}", "takes one fault away and shows what became of it", func(c *controlCall) (any, error) {
			return s.faults.disarm(c.r.Context(), c.r.PathValue("id"))
		}},
	}
}

// faultList is an object, so that the reply can grow.
func faultList(list []ArmedFault, err error) (any, error) { return map[string]any{"faults": list}, err }

// controlArm answers with the fault as it is in force, defaults filled in.
func (s *Server) controlArm(c *controlCall) (any, error) {
	var fault Fault
	if err := c.body(&fault); err != nil {
		return nil, err
	}
	armed, err := s.faults.arm(c.r.Context(), fault)
	if err != nil {
		return nil, err
	}
	return controlReply{http.StatusCreated, armed}, nil
}
