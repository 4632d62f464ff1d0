package destsim

import "github.com/destkit/destkit/destsim/rpc"

// timeViolations are answers that come late (TIM-*).
func timeViolations() []violation {
	return []violation{
		breaks("TIM-001", "supported_operations of the last object takes Delays.Planning",
			seams{parsed: func(c *call) {
				if c.lastOperations() {
					c.sleep(c.sim.delays.Planning)
				}
			}}),
		breaks("TIM-002", "a batch of the declared size whose plan maps more than identifiers and required fields takes Delays.Batch",
			seams{batch: func(c *call, b *batch) *rpc.Error {
				if int64(b.Len()) == c.sim.speed.Load().MaximumBatchSize && b.plan.mapsOptional() {
					c.sleep(c.sim.delays.Batch)
				}
				return nil
			}}),
		breaks("TIM-003", "supported_operations of the last object sends half of its body and stands still for Delays.Stall",
			seams{write: func(c *call, h *httpReply) {
				if c.lastOperations() {
					h.stall, h.stallAt = c.sim.delays.Stall, len(h.body)/2
				}
			}}),
	}
}

// lastOperations reports whether a call asks for the operations of the object
// that is listed last.
func (c *call) lastOperations() bool {
	objects := c.sim.catalogue.Load().objects
	return gives(c, rpc.MethodSupportedOperations) && len(objects) > 0 && objects[len(objects)-1].APIName == c.object
}

// mapsOptional reports whether a plan maps a field that a record can do without.
func (p *plan) mapsOptional() bool {
	for _, col := range p.columns {
		if !col.Identifier && !col.Required {
			return true
		}
	}
	return false
}
