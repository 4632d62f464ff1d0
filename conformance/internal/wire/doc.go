// Package wire owns the judge's line to an endpoint: a raw HTTP/1.1 client that
// writes every request byte by hand and parses every reply strictly, the
// record and redactor of what passed, and a JSON tree that keeps the text of
// every value. It refuses to know the protocol's rules: it says what was on the
// wire, in what order and how fast, and leaves every verdict to its caller. It
// never repairs a reply: wrong framing is reported, not guessed around.
//
// Everything that a peer controls is bounded: the head of a reply, its body as
// received and as decoded, the memory of all living replies together, the time
// of a call. It never listens on a network and never sets InsecureSkipVerify.
package wire
