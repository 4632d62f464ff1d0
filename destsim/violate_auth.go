package destsim

import (
	"strings"
	"sync/atomic"

	"github.com/destkit/destkit/destsim/rpc"
)

// authViolations are broken checks of the token and the URL secret (AUTH-*).
func authViolations() []violation {
	return append(admissionViolations(), refusalViolations()...)
}

// admits is a violation of the decision itself: it lets a call in that the
// clean destination refuses, when more says so.
func admits(id, changes string, more func(c *call) bool, also ...Also) violation {
	return breaks(id, changes, seams{auth: func(c *call, allowed bool) bool { return allowed || more(c) }}, also...)
}

// admissionViolations let the wrong callers in, or keep the right one out.
func admissionViolations() []violation {
	return []violation{
		breaks("AUTH-001", "list_fields with the right credentials answers 401 with an error envelope",
			seams{auth: func(c *call, allowed bool) bool { return allowed && c.method != rpc.MethodListFields }}),
		admits("AUTH-002", "a missing Authorization header is refused on test_connection only", func(c *call) bool {
			return c.method != rpc.MethodTestConnection && lacksToken(c) && secretRight(c)
		}, Also{"AUTH-008", "a batch without a token is executed"}),
		admits("AUTH-003", "a token that begins with the right token is accepted", func(c *call) bool {
			given, token := bearer(c), *c.sim.token.Load()
			return strings.HasPrefix(given, token) && secretRight(c)
		}),
		admits("AUTH-003.2", "the token is compared without case", func(c *call) bool {
			return strings.EqualFold(bearer(c), *c.sim.token.Load()) && secretRight(c)
		}),
		admits("AUTH-004", "the secret in the query of the URL is ignored", func(c *call) bool {
			return c.sim.config.URLSecret.Query != "" && tokenRight(c)
		}),
		admits("AUTH-004.2", "the secret in the path of the URL is ignored", func(c *call) bool {
			return c.sim.config.URLSecret.Path != nil && tokenRight(c)
		}),
		admits("AUTH-005", "of a repeated secret parameter in the URL the last value counts", func(c *call) bool {
			secret := c.sim.config.URLSecret
			values := c.r.URL.Query()[secret.Query]
			return secret.Query != "" && len(values) > 1 && same(values[len(values)-1], secret.Value) && tokenRight(c)
		}),
		admits("AUTH-009", "after a rotation the old token is still accepted", func(c *call) bool {
			return tokenMatches(c.sim.config.Token, c.r.Header["Authorization"]) && secretRight(c)
		}),
	}
}

// refusalViolations refuse in the wrong way.
func refusalViolations() []violation {
	return []violation{
		breaks("AUTH-006", `every method without credentials answers status 200 and "result":{"success":false}`,
			seams{answered: func(c *call) {
				if c.denied && lacksToken(c) {
					c.answer(connectionResult{})
					c.status = 200
					c.reply.header.Del("WWW-Authenticate")
				}
			}}),
		breaks("AUTH-007", "the message of a refusal because of a wrong token contains the Authorization header that was sent",
			seams{answered: func(c *call) {
				if sent := c.r.Header["Authorization"]; c.denied && c.err != nil && len(sent) > 0 && !tokenRight(c) {
					c.err.Message = "authentication failed: bad header: Authorization: " + strings.Join(sent, ", ")
				}
			}}),
		breaks("AUTH-008", "a sync_batch without or with wrong credentials is executed and then answered 401",
			seams{
				auth: func(c *call, allowed bool) bool { return allowed || c.method == rpc.MethodSyncBatch },
				answered: func(c *call) {
					if c.denied && c.method == rpc.MethodSyncBatch {
						c.refuseAccess()
					}
				},
			}),
	}
}

// lacksToken reports whether a token is asked for and no header came.
func lacksToken(c *call) bool {
	return *c.sim.token.Load() != "" && len(c.r.Header["Authorization"]) == 0
}

// tokenRight and secretRight are the two halves of the clean decision: a
// violation of one of them keeps the other.
func tokenRight(c *call) bool {
	return tokenMatches(*c.sim.token.Load(), c.r.Header["Authorization"])
}

func secretRight(c *call) bool { return c.sim.config.URLSecret.matches(c.r.URL) }

// bearer is the token of the only Authorization header, "" for anything else.
func bearer(c *call) string {
	sent := c.r.Header["Authorization"]
	if len(sent) != 1 {
		return ""
	}
	token, _ := strings.CutPrefix(sent[0], "Bearer ")
	if token == sent[0] {
		return ""
	}
	return token
}

// connectionViolations are test_connection and list_objects answered wrongly (CON-*).
func connectionViolations() []violation {
	healthy := func(id, changes string, result any) violation {
		return breaks(id, changes, seams{plan: func(_ *call, value any) any {
			if v, ok := value.(connectionResult); ok && v.Success {
				return result
			}
			return value // a fault of the downstream is still reported
		}})
	}
	empty := func(id, method string) violation {
		return breaks(id, method+" with params {} answers an error -32602", seams{parsed: func(c *call) {
			if gives(c, method) && len(membersOf(c.params)) == 0 {
				c.fail(rpc.CodeInvalidParams, "invalid params: a parameter is missing")
			}
		}})
	}
	return []violation{
		healthy("CON-001", "test_connection answers {}", struct{}{}),
		healthy("CON-001.2", `test_connection answers "success":"true"`, map[string]string{"success": "true"}),
		healthy("CON-001.3", `test_connection answers "success":1`, map[string]int{"success": 1}),
		breaks("CON-002", "test_connection answers success while the downstream is broken",
			seams{plan: func(_ *call, value any) any {
				if _, ok := value.(connectionResult); ok {
					return connectionResult{Success: true}
				}
				return value
			}}),
		keeps("CON-003", "every third test_connection fails as already connected", func(*Sim) seams {
			var calls atomic.Int64 // from the start of the process
			return seams{plan: func(_ *call, value any) any {
				if _, ok := value.(connectionResult); ok && calls.Add(1)%3 == 0 {
					return connectionResult{ErrorMessage: "already connected"}
				}
				return value
			}}
		}),
		empty("CON-004", rpc.MethodTestConnection),
		empty("CON-005", rpc.MethodListObjects),
	}
}
