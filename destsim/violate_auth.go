package destsim

import (
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
)

// authViolations are broken checks of the token and the URL secret (AUTH-*): they let
// the wrong callers in, keep the right one out, or refuse in the wrong way.
var authViolations = []violation{
	breaks("AUTH-001", "list_fields with the right credentials answers 401 with an error envelope",
		seams{auth: func(c *call, allowed bool) bool { return allowed && c.method != rpc.MethodListFields }}),
	breaks("AUTH-002", "a missing Authorization header is refused on test_connection only", admits(func(c *call) bool {
		return c.method != rpc.MethodTestConnection && lacksToken(c) && secretRight(c)
	}), Also{"AUTH-008", "a batch without a token is executed"}),
	breaks("AUTH-003", "a token that begins with the right token is accepted",
		admits(func(c *call) bool { return strings.HasPrefix(bearer(c), *c.sim.token.Load()) && secretRight(c) })),
	breaks("AUTH-003.2", "the token is compared without case",
		admits(func(c *call) bool { return strings.EqualFold(bearer(c), *c.sim.token.Load()) && secretRight(c) })),
	breaks("AUTH-004", "the secret in the query of the URL is ignored",
		admits(func(c *call) bool { return c.sim.config.URLSecret.Query != "" && tokenRight(c) })),
	breaks("AUTH-004.2", "the secret in the path of the URL is ignored",
		admits(func(c *call) bool { return c.sim.config.URLSecret.Path != nil && tokenRight(c) })),
	breaks("AUTH-005", "of a repeated secret parameter in the URL the last value counts", admits(func(c *call) bool {
		secret := c.sim.config.URLSecret
		values := c.r.URL.Query()[secret.Query]
		return secret.Query != "" && len(values) > 1 && same(values[len(values)-1], secret.Value) && tokenRight(c)
	})),
	breaks("AUTH-009", "after a rotation the old token is still accepted",
		admits(func(c *call) bool {
			return tokenMatches(c.sim.config.Token, c.r.Header["Authorization"]) && secretRight(c)
		})),
	breaks("AUTH-006", `every method without credentials answers status 200 and "result":{"success":false}`,
		answered(func(c *call) bool { return c.denied && lacksToken(c) }, func(c *call) {
			c.answer(connectionResult{})
			c.status = 200
			c.reply.header.Del("WWW-Authenticate")
		})),
	breaks("AUTH-007", "the message of a refusal because of a wrong token contains the Authorization header that was sent",
		answered(func(c *call) bool { return c.denied && c.err != nil && !tokenRight(c) }, func(c *call) {
			if sent := c.r.Header["Authorization"]; len(sent) > 0 {
				c.err.Message = "authentication failed: bad header: Authorization: " + strings.Join(sent, ", ")
			}
		})),
	breaks("AUTH-008", "a sync_batch without or with wrong credentials is executed and then answered 401", seams{
		auth:     func(c *call, allowed bool) bool { return allowed || c.method == rpc.MethodSyncBatch },
		answered: called(func(c *call) bool { return c.denied && c.method == rpc.MethodSyncBatch }, (*call).refuseAccess).parsed,
	}),
}

// admits lets a call in that the clean destination refuses, when more returns true.
func admits(more func(c *call) bool) seams {
	return seams{auth: func(c *call, allowed bool) bool { return allowed || more(c) }}
}

// lacksToken reports whether a token is required and no header came.
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
	if len(sent) != 1 || !strings.HasPrefix(sent[0], "Bearer ") {
		return ""
	}
	return strings.TrimPrefix(sent[0], "Bearer ")
}

// connectionViolations are test_connection and list_objects answered wrongly (CON-*).
var connectionViolations = []violation{
	breaks("CON-001", "test_connection answers {}", healthy(struct{}{})),
	breaks("CON-001.2", `test_connection answers "success":"true"`, healthy(map[string]string{"success": "true"})),
	breaks("CON-001.3", `test_connection answers "success":1`, healthy(map[string]int{"success": 1})),
	breaks("CON-002", "test_connection answers success while the downstream is broken",
		planned(func(*call, connectionResult) any { return connectionResult{Success: true} })),
	counts("CON-003", "every third test_connection fails as already connected", func(next func() int64) seams {
		return planned(func(_ *call, v connectionResult) any {
			if next()%3 == 0 {
				return connectionResult{ErrorMessage: "already connected"}
			}
			return v
		})
	}),
	breaks("CON-004", "test_connection with params {} answers an error -32602", refusesEmpty(rpc.MethodTestConnection)),
	breaks("CON-005", "list_objects with params {} answers an error -32602", refusesEmpty(rpc.MethodListObjects)),
}

// healthy gives test_connection another result where it is a success: a fault of the
// downstream is still reported.
func healthy(result any) seams {
	return planned(func(_ *call, v connectionResult) any {
		if v.Success {
			return result
		}
		return v
	})
}

// refusesEmpty refuses a method with params {}.
func refusesEmpty(method string) seams {
	return called(func(c *call) bool { return gives(c, method) && len(membersOf(c.params)) == 0 },
		func(c *call) { c.fail(rpc.CodeInvalidParams, "invalid params: a parameter is missing") })
}
