package wire

// Request is one request that is ready to be sent: a batch, or a call of a service's
// API. It is good until the next one of its connection.
type Request struct {
	Wire []byte // all of it: what a link writes
	// For net/http: body without the head, method and the path with its query. Without a
	// method it is a POST to the URL of the endpoint.
	Body           []byte
	Method, Target string
}

// Reply is the answer to one request; body is good until the next call.
type Reply struct {
	Status  int
	Body    []byte
	Limit   int64
	Retry   string
	Dialled int64 // nanoseconds that connecting took, 0 on a kept connection
}
