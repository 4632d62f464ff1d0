// Package service judges the other side of the protocol: a service, by its REST
// API and by how it calls destinations (spec 2 to 9). It drives the service
// through its API and watches it through destinations of its own, the endpoints:
// every connection that a scenario makes leads to a simulated destination, whose
// every call is recorded and can be answered by hand.
//
// It refuses to know the service's code and the simulator's: a simulator is
// handed in, and so is whatever listens.
package service
