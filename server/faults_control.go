package server

import "net/http"

// faultRoutes arm and take away faults.
func (s *Server) faultRoutes() []controlRoute {
	return []controlRoute{
		{"POST", "/faults", "makes a fault: kind (latency, status, rate_limited, drop), phase (before, after), and which calls it strikes", s.controlArm},
		{"GET", "/faults", "lists the faults and how often they matched and fired", func(*controlCall) (any, error) {
			return faultList(s.faults.all()), nil
		}},
		{"GET", "/faults/unfired", "lists the faults that never fired", func(*controlCall) (any, error) {
			return faultList(s.UnfiredFaults()), nil
		}},
		{"DELETE", "/faults", "takes all faults away and shows what became of them", func(*controlCall) (any, error) {
			return faultList(s.faults.forget()), nil
		}},
		{"DELETE", "/faults/{id}", "takes one fault away and shows what became of it", func(c *controlCall) (any, error) {
			return s.faults.disarm(c.r.PathValue("id"))
		}},
	}
}

// faultList is an object, so that the reply can grow.
func faultList(list []ArmedFault) any { return map[string]any{"faults": list} }

// controlArm answers with the fault as it is in force, defaults filled in.
func (s *Server) controlArm(c *controlCall) (any, error) {
	var fault Fault
	if err := c.body(&fault); err != nil {
		return nil, err
	}
	armed, err := s.faults.arm(fault)
	if err != nil {
		return nil, err
	}
	return controlReply{http.StatusCreated, armed}, nil
}
