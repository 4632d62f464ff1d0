package destsim

// tlsViolations are broken certificates, old TLS versions and plain http
// (TLS-*). A handler sees nothing of TLS: they only name what the listener of
// the program shall do, see Sim.TLSViolation.
var tlsViolations = []violation{
	breaks("TLS-001", "the endpoint is served over plain http although TLS was asked for", seams{tls: "TLS-001"}),
	breaks("TLS-002", "the certificate is self-signed", seams{tls: "TLS-002"}),
	breaks("TLS-003", "the certificate names another host", seams{tls: "TLS-003"}),
	breaks("TLS-003.2", "the certificate of a default virtual host is served, whatever name the client asks for", seams{tls: "TLS-003.2"}),
	breaks("TLS-004", "the certificate expired yesterday", seams{tls: "TLS-004"}),
	breaks("TLS-004.2", "the certificate becomes valid tomorrow", seams{tls: "TLS-004.2"}),
	breaks("TLS-005", "only the leaf is sent, without the intermediate certificate", seams{tls: "TLS-005"}),
	breaks("TLS-006", "only TLS 1.0 is offered", seams{tls: "TLS-006"}),
	breaks("TLS-006.2", "the certificate has an RSA key of 1024 bits", seams{tls: "TLS-006.2"}),
	breaks("TLS-007", "plain http on the same port executes calls", seams{tls: "TLS-007"}),
	breaks("TLS-009", "the certificate has 3 days left", seams{tls: "TLS-009"}),
}
