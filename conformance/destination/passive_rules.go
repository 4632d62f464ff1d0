package destination

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// passiveRule says which exchanges of others show whether a check holds. A rule
// takes only what leaves no doubt: a call that may fail for a good reason, such as a
// fault behind the endpoint (spec 4.2.4), decides nothing.
type passiveRule struct {
	// takes reports whether the claims of the check are put to an exchange.
	takes func(p *ruler, c *sighted) bool
	// with adds to the scenario what the claims need beside the exchange itself.
	with func(p *ruler, c *sighted, sc *scenario)
	// claims are those of the check that traffic can decide; nil: all of them.
	claims []string
	// late judges at the end, from what was counted on the way.
	late func(p *ruler, pc *passiveCheck)
}

// sameTime is how far apart two answers may be that must agree: a schema may change,
// though not from one call of a sync to the next.
const sameTime = time.Minute

// passiveRules are the checks that traffic can decide.
var passiveRules = map[string]*passiveRule{}

func init() {
	each := func(takes func(c *sighted) bool, ids ...string) {
		for _, id := range ids {
			passiveRules[id] = &passiveRule{takes: func(_ *ruler, c *sighted) bool { return takes(c) }}
		}
	}
	// What the endpoint itself has answered, whatever was asked.
	answers := func(c *sighted) bool { return c.Ended() && !c.refusedOutside() }
	each(answers, "RPC-017", "HTTP-001", "HTTP-011", "ERR-004", "ERR-003")
	// What reads the body as a call answers with an envelope; a body that is no call has rules
	// for itself.
	called := func(c *sighted) bool { return answers(c) && (c.form == goodForm || c.form == badParams) }
	each(called, "RPC-001", "RPC-002", "RPC-004", "RPC-005", "RPC-006", "RPC-007", "RPC-014", "RPC-015", "HTTP-002")
	each(func(c *sighted) bool {
		// A library that could not read the request answers with a null id.
		unread := c.IsError() && c.Member("id").Is(wire.Null)
		return answers(c) && (c.form == goodForm && !(unread && c.odd()) || c.form == badParams && !unread)
	}, "RPC-003")
	each(func(c *sighted) bool { return answers(c) && c.form == goodForm && !c.known() && c.almost() == "" }, "RPC-008")
	each(func(c *sighted) bool {
		return answers(c) && c.form == goodForm && !c.known() && c.almost() == "" && ordinaryName.MatchString(c.Method)
	}, "RPC-009")
	each(func(c *sighted) bool { return answers(c) && c.form == goodForm && c.almost() != "" }, "RPC-019")
	each(func(c *sighted) bool { return answers(c) && c.form == noJSON && c.badBody }, "RPC-010")
	each(func(c *sighted) bool {
		return answers(c) && c.form == noEnvelope && !(c.request.Get("method").Is(wire.String) && c.Method == "")
	}, "RPC-011")
	each(func(c *sighted) bool { return answers(c) && c.form == badParams && c.known() }, "RPC-012")
	each(func(c *sighted) bool { return answers(c) && (c.form == notObject || c.form == noID) }, "RPC-018")
	each(func(c *sighted) bool { return answers(c) && c.form == goodForm }, "HTTP-003")
	each(func(c *sighted) bool { return answers(c) && c.form == goodForm && c.Status/100 != 3 }, "HTTP-010")
	each(func(c *sighted) bool { return c.Status != 0 && c.Kind != wire.KindCanceled }, "HTTP-004", "HTTP-006", "TIM-003")
	each(func(c *sighted) bool { return c.Ended() && c.httpMethod == http.MethodPost }, "HTTP-007")
	each(func(c *sighted) bool {
		return answers(c) && c.httpMethod != http.MethodPost && c.httpMethod != http.MethodOptions
	}, "HTTP-005")
	each(func(c *sighted) bool { return c.Ended() && len(c.Header.Values(rateHeader)) > 0 }, "RL-001", "RL-002", "RL-006")

	// Results of one method.
	of := func(method string, ids ...string) {
		each(func(c *sighted) bool { return c.form == goodForm && c.Method == method && c.Result() != nil }, ids...)
	}
	of(rpc.MethodTestConnection, "CON-001", "VER-001")
	of(rpc.MethodListObjects, "OBJ-001", "OBJ-002", "OBJ-003")
	of(rpc.MethodListFields, "FLD-001", "FLD-002", "FLD-003", "FLD-004", "FLD-005", "FLD-006", "FLD-008")
	of(rpc.MethodSupportedOperations, "OPS-001", "OPS-002")
	of(rpc.MethodGetSyncSpeed, "SPD-001", "SPD-003", "SPD-004")
	// Empty params are refused as wrong only by an endpoint that wants some; any other
	// error may have another cause.
	empty := func(method, id string) {
		each(func(c *sighted) bool {
			return c.form == goodForm && c.Method == method && c.empty && (c.Result() != nil || c.IsError() && c.ErrorCode() == "-32602")
		}, id)
	}
	empty(rpc.MethodTestConnection, "CON-004")
	empty(rpc.MethodListObjects, "CON-005")
	empty(rpc.MethodGetSyncSpeed, "SPD-002")
	planningRules()
	batchRules()
	callerRules()
}

// ordinaryName is the form of a method that is known or not; another one may be refused
// for its form.
var ordinaryName = regexp.MustCompile(`^[A-Za-z_]{1,64}$`)

// planningRules are those that compare answers of planning calls.
func planningRules() {
	// The same question twice.
	pair := func(id string, before func(p *ruler, c *sighted) *sighted) {
		passiveRules[id] = &passiveRule{
			takes: func(p *ruler, c *sighted) bool {
				b := before(p, c)
				return c.form == goodForm && c.Result() != nil && b != nil && c.near(b)
			},
			with: func(p *ruler, c *sighted, sc *scenario) {
				sc.replies = append(sc.replies[:0], before(p, c).reply, c.reply)
			},
		}
	}
	of := func(method string, known func(p *ruler, c *sighted) *sighted) func(p *ruler, c *sighted) *sighted {
		return func(p *ruler, c *sighted) *sighted {
			if c.Method != method {
				return nil
			}
			return known(p, c)
		}
	}
	pair("OBJ-004", of(rpc.MethodListObjects, func(p *ruler, _ *sighted) *sighted { return p.seen.objects }))
	pair("SPD-005", of(rpc.MethodGetSyncSpeed, func(p *ruler, _ *sighted) *sighted { return p.seen.speed }))
	fields := func(p *ruler, c *sighted) *sighted { return p.seen.fields[c.Object] }
	labelled := func(same bool) func(p *ruler, c *sighted) *sighted {
		return of(rpc.MethodListFields, func(p *ruler, c *sighted) *sighted {
			if b := fields(p, c); b != nil && (b.label() == c.label()) == same {
				return b
			}
			return nil
		})
	}
	pair("FLD-010", labelled(true))
	pair("FLD-015", labelled(false))
	pair("PAR-001", of(rpc.MethodListFields, func(p *ruler, c *sighted) *sighted {
		if !p.seen.beside(c) {
			return nil
		}
		return fields(p, c)
	}))
	passiveRules["FLD-007"] = &passiveRule{
		takes: func(p *ruler, c *sighted) bool {
			return c.form == goodForm && c.Method == rpc.MethodListFields && c.Result() != nil && p.seen.operations[c.Object] != nil
		},
		with: func(p *ruler, c *sighted, sc *scenario) {
			sc.replies = append(sc.replies[:0], p.seen.operations[c.Object].reply, c.reply)
		},
	}
	unknown := func(method string) *passiveRule {
		return &passiveRule{takes: func(p *ruler, c *sighted) bool {
			listed := p.seen.objects
			return c.form == goodForm && c.Method == method && listed != nil && c.near(listed) && c.Doc() != nil && !c.refusedOutside() &&
				!slices.Contains(texts(listed.Items("objects"), "object_api_name"), c.Object)
		}}
	}
	passiveRules["FLD-009"], passiveRules["OPS-003"] = unknown(rpc.MethodListFields), unknown(rpc.MethodSupportedOperations)
	passiveRules["RL-003"] = &passiveRule{
		takes: func(p *ruler, c *sighted) bool {
			return c.Ended() && len(c.Header.Values(rateHeader)) > 0 && !p.seen.beside(c) // which was answered first is not known
		},
		with: func(p *ruler, c *sighted, sc *scenario) {
			sc.replies = sc.replies[:0]
			for _, b := range p.seen.limits {
				if c.near(b) {
					sc.replies = append(sc.replies, b.reply)
				}
			}
			sc.replies = append(sc.replies, c.reply)
		},
	}
	passiveRules["RL-004"] = &passiveRule{
		takes: func(p *ruler, c *sighted) bool { return c.Status == http.StatusTooManyRequests && p.seen.calm(p, c) },
		with:  func(_ *ruler, _ *sighted, sc *scenario) { sc.measured.reached = new(1.0) },
	}
	passiveRules["TIM-001"] = &passiveRule{takes: func(p *ruler, c *sighted) bool {
		return c.known() && c.Method != rpc.MethodSyncBatch && (c.Ended() || c.Total > p.s.opts.PlanningTimeout)
	}}
	for _, id := range []string{"TLS-001", "TLS-002", "TLS-003", "TLS-004", "TLS-005", "TLS-006", "TLS-009"} {
		passiveRules[id] = &passiveRule{takes: func(*ruler, *sighted) bool { return false }, late: (*ruler).judgeTLS}
	}
}

// batchRules judge what sync_batch was answered.
func batchRules() {
	batches := func(takes func(p *ruler, c *sighted) bool, ids ...string) {
		for _, id := range ids {
			passiveRules[id] = &passiveRule{takes: func(p *ruler, c *sighted) bool { return c.batch != nil && takes(p, c) }}
		}
	}
	answeredWell := func(c *sighted) bool { return c.Result() != nil }
	named := func(_ *ruler, c *sighted) bool { return c.batch.IsArray && c.keyless == 0 && c.records > 0 }
	batches(func(_ *ruler, c *sighted) bool { return c.Result() != nil && c.records > 0 }, "RES-001")
	batches(func(_ *ruler, c *sighted) bool { return c.batch.IsArray && len(c.batch.records) > 0 }, "RES-002")
	batches(named, "RES-003", "RES-004")
	batches(func(_ *ruler, c *sighted) bool { return len(c.batch.List) > 0 }, "RES-005", "RES-007")
	batches(func(_ *ruler, c *sighted) bool {
		return slices.ContainsFunc(c.batch.List, func(r result) bool { return r.Success != nil && !*r.Success })
	}, "RES-006")
	batches(func(p *ruler, c *sighted) bool {
		return named(p, c) && slices.ContainsFunc(c.batch.records, func(r *record) bool { return len(r.key) > 0 && r.key[0] != '"' })
	}, "RES-017")
	batches(func(p *ruler, c *sighted) bool {
		return c.records == 0 && (c.Result() != nil || c.IsError() && p.seen.admitted(c))
	}, "RES-011")
	batches(func(p *ruler, c *sighted) bool {
		return c.keyless > 0 && c.keyless == c.records && answeredWell(c)
	}, "RES-019")
	passiveRules["RES-019"].claims = []string{"no record is acknowledged"}
	batches(func(p *ruler, c *sighted) bool {
		ops := p.seen.operations[c.Object]
		return c.records > 0 && ops != nil && c.near(ops) && c.batch.operation != "" && !(&object{Operations: readOperations(ops.reply)}).accepts(c.batch.operation)
	}, "OPS-005")
	batches(func(p *ruler, c *sighted) bool {
		fields := p.seen.fields[c.Object]
		return c.records > 0 && c.active != "" && fields != nil && c.near(fields) && !identifierIn(fields.reply, c.active)
	}, "FLD-013")
	batches(func(p *ruler, c *sighted) bool {
		return p.seen.beside(c) && c.batch.IsArray && len(c.batch.records) > 0
	}, "PAR-002")
	passiveRules["PAR-002"].claims = []string{"every record has a result"}
	batches(func(p *ruler, c *sighted) bool {
		// A small batch in time says nothing of a full one.
		full := p.s.catalog.speed != nil && int64(c.records) >= p.s.catalog.speed.MaximumBatchSize
		return full && c.enveloped() || c.Total > p.s.opts.BatchTimeout
	}, "TIM-002")
	batches(func(_ *ruler, c *sighted) bool {
		const most = 4 << 20
		n := len(c.Request)
		return n >= 100<<10 && n <= most && c.Status == http.StatusRequestEntityTooLarge || n >= most*9/10 && c.batch.IsArray
	}, "DAT-012")
	processedRules()
}

// callerRules are about who may call.
func callerRules() {
	stranger := func(p *ruler, c *sighted) bool {
		return c.auth == "" && p.seen.authorized != "" && c.form == goodForm && c.known() && c.Ended()
	}
	for _, id := range []string{"AUTH-002", "AUTH-006"} {
		passiveRules[id] = &passiveRule{takes: stranger}
		for _, claim := range []string{"every reply refuses the caller", "every reply refuses the caller by an error or a status of 401 or 403"} {
			if (id == "AUTH-006") == strings.HasSuffix(claim, "403") {
				passiveRules[id].claims = []string{claim}
			}
		}
	}
	passiveRules["AUTH-007"] = &passiveRule{
		takes: func(p *ruler, c *sighted) bool {
			secret := p.seen.secretOf(c)
			if secret == "" && p.s.secret == "" || !c.OK() {
				return false
			}
			// Looking for a secret in every encoding takes long: in a large body that is no
			// error it is looked for as it is.
			return c.IsError() || c.Doc() == nil || len(c.Body) <= mostSearched || c.number <= 64 || secret != "" && strings.Contains(string(c.Body), secret)
		},
		with: func(p *ruler, c *sighted, sc *scenario) { sc.target.Token = p.seen.secretOf(c) },
	}
	passiveRules["AUTH-001"] = &passiveRule{takes: func(*ruler, *sighted) bool { return false }, late: (*ruler).refusedMethods}
}

// mostSearched is the length of a body that is searched for secrets in every encoding.
const mostSearched = 4 << 10

// secretOf is the token that must not be in a reply: that of the call, or where the call
// was refused the last one that was not. A wrong token is no secret.
func (t *traffic) secretOf(c *sighted) string {
	if c.Result() != nil || t.accepted[c.auth] != nil && len(t.accepted[c.auth].methods) > 0 {
		return bearerOf(c.auth)
	}
	return bearerOf(t.authorized)
}

// leastSecret is the length below which the text of a credential stands in a reply by
// chance.
const leastSecret = 6

// bearerOf is the secret in an Authorization header, "" where it holds none to look for.
func bearerOf(value string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if rest == "" && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
		return ""
	}
	rest = cmp.Or(rest, scheme)
	if rest = strings.TrimSpace(rest); len(rest) < leastSecret {
		return ""
	}
	return rest
}

// enveloped reports whether the endpoint has answered a good call by an envelope.
func (c *sighted) enveloped() bool { return c.Result() != nil || c.IsError() }

// almost is the method of the protocol that differs from the one that was called in
// case or space only.
func (c *sighted) almost() string {
	if c.known() {
		return ""
	}
	for _, m := range rpc.Methods() {
		if strings.EqualFold(strings.TrimSpace(c.Method), m) {
			return m
		}
	}
	return ""
}

// near reports whether two exchanges were made at about the same time.
func (c *sighted) near(o *sighted) bool { return c.Started.Sub(o.Started).Abs() <= sameTime }

// label is what a planning call names beside the object.
func (c *sighted) label() string { return text(c.params.Get("object", "label")) }

// identifierIn reports whether a reply of list_fields declares a field an identifier.
func identifierIn(r *reply, name string) bool {
	return slices.ContainsFunc(readFields(r), func(f rpc.Field) bool { return f.APIName == name && f.Identifier })
}
