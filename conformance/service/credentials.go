package service

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// credentials are what a call may bring, by what a scenario calls it.
func (sc *scenario) credentials(who string) (request, error) {
	basic := func(user, password string) request {
		return request{as: asNobody, header: http.Header{
			"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))},
		}}
	}
	raw := func(value string) request {
		return request{as: asNobody, header: http.Header{"Authorization": {value}}}
	}
	kinds := map[string]func() request{
		"the workspace API key":     func() request { return request{as: asWorkspace} },
		"the personal access token": func() request { return request{as: asOrganization} },
		"no token":                  func() request { return request{as: asNobody} },
		"an unknown token":          func() request { return request{token: unknownToken} },
		"a damaged key":             func() request { return request{token: sc.key[:len(sc.key)-1]} },
		"a key that goes on":        func() request { return request{token: sc.key + "x"} },
		"a key in other case":       func() request { return request{token: swapCase(sc.key)} },
		"a damaged personal token":  func() request { return request{token: sc.pat[:len(sc.pat)-1]} },
		"an empty token":            func() request { return raw("Bearer ") },
		"the key as password of bearer": func() request {
			return basic("bearer", sc.key)
		},
		"the key as password of somebody": func() request { return basic("somebody", sc.key) },
		"an unknown password of bearer":   func() request { return basic("bearer", unknownToken) },
		"no password of bearer":           func() request { return basic("bearer", "") },
		"the key without a scheme":        func() request { return raw(sc.key) },
		"the key after Token":             func() request { return raw("Token " + sc.key) },
		"the key after bearer":            func() request { return raw("bearer " + sc.key) },
		"the key after BEARER":            func() request { return raw("BEARER " + sc.key) },
		"the key in X-Api-Key":            func() request { return request{as: asNobody, header: http.Header{"X-Api-Key": {sc.key}}} },
	}
	kind, ok := kinds[who]
	if !ok {
		return request{}, conformance.Outcome(conformance.HarnessError, "", "unknown credentials %q", who)
	}
	if strings.Contains(who, "personal") {
		if err := sc.needsOrganization(); err != nil {
			return request{}, err
		}
	}
	return kind(), nil
}

const unknownToken = "secret-token:zz-conf-nobody-has-this-one"

// swapCase changes the case of every letter after the published prefix.
func swapCase(token string) string {
	prefix, rest, found := strings.Cut(token, ":")
	if !found {
		prefix, rest = "", token
	} else {
		prefix += ":"
	}
	return prefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, rest)
}
