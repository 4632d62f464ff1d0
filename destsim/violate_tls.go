package destsim

// tlsViolations are broken certificates, old TLS versions and plain http
// (TLS-*). A handler sees nothing of TLS: they only name what the listener of
// the program shall do, see Sim.TLSViolation.
func tlsViolations() []violation {
	listener := func(id, changes string) violation { return breaks(id, changes, seams{tls: id}) }
	return []violation{
		listener("TLS-001", "the endpoint is served over plain http although TLS was asked for"),
		listener("TLS-002", "the certificate is self-signed"),
		listener("TLS-003", "the certificate names another host"),
		listener("TLS-003.2", "the certificate of a default virtual host is served, whatever name the client asks for"),
		listener("TLS-004", "the certificate expired yesterday"),
		listener("TLS-004.2", "the certificate becomes valid tomorrow"),
		listener("TLS-005", "only the leaf is sent, without the intermediate certificate"),
		listener("TLS-006", "only TLS 1.0 is offered"),
		listener("TLS-006.2", "the certificate has an RSA key of 1024 bits"),
		listener("TLS-007", "plain http on the same port executes calls"),
		listener("TLS-009", "the certificate has 3 days left"),
	}
}
