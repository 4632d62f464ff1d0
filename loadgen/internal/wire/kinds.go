package wire

// The kinds of errors, as they stand in reports. The first group fails a whole
// request, the second single records of a batch.
const (
	KindDescriptors = "descriptors"     // no file descriptor is left
	KindPorts       = "ports"           // no local port is left
	KindDNS         = "dns"             // the name does not resolve
	KindRefused     = "connect_refused" // nothing listens there
	KindConnect     = "connect"         // any other failure to connect
	KindTLS         = "tls"             // no handshake, or the chain does not verify
	KindTimeout     = "timeout"         // no whole reply in time
	KindReset       = "reset"           // the connection was reset
	KindClosed      = "closed"          // … or closed before a reply began
	KindTruncated   = "truncated"       // the reply is shorter than announced
	KindTooLarge    = "reply_too_large" // … or longer than the bound
	KindHTTP        = "http"            // not HTTP, or against its rules
	KindStatus      = "http_status"     // a status other than 200 without an error object
	KindThrottled   = "throttled"       // 429
	KindJSON        = "json"            // the body is not JSON
	KindEnvelope    = "envelope"        // no response to this request (spec 7.2.1)
	KindRPC         = "rpc_error"       // an error object (spec 7.2.2)
	KindResults     = "results"         // record_results has the wrong shape
	KindInterrupted = "interrupted"     // the run ended before the reply

	KindRecordRefused = "record_refused" // success is not true
	KindMissing       = "result_missing" // a record without a result
	KindUnknown       = "result_unknown" // a result for an identifier that was not sent
	KindRepeated      = "result_repeated"
)

// The kinds of errors that only a load on the API of a service has; those of connections,
// status and JSON are the same. KindEnvelope is a reply without the status success or
// without data (spec 2.1).
const (
	KindPagination    = "pagination"     // page, per_page, next_page, last_page or total_records are wrong
	KindItem          = "item"           // not what was asked for, or without an id
	KindItemRepeated  = "item_repeated"  // an item stands in a list twice
	KindItemMissing   = "item_missing"   // a list ends with fewer items than it counts
	KindRunState      = "run_state"      // a run has a state that cannot be
	KindRunUnfinished = "run_unfinished" // a run has not ended in time
)

// The kinds of errors that a verification finds.
const (
	KindLost      = "record_lost"      // acknowledged, and not there
	KindWrong     = "record_wrong"     // there, with another value than any that was acknowledged last
	KindDoubled   = "record_doubled"   // there more than once
	KindUndeleted = "record_undeleted" // its deletion was acknowledged, and it is there
)
