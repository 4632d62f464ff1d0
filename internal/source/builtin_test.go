package source

import (
	"context"
	"encoding/json"

	"github.com/destkit/destkit/server/api"
)

// Types are those of the built-in catalogue.
func Types() []api.SourceType { return BuiltIn().Types() }

// CheckCredentials is that of the built-in catalogue.
func CheckCredentials(typ string, credentials map[string]json.RawMessage) []api.Problem {
	return BuiltIn().CheckCredentials(typ, credentials)
}

// OpenAt is that of the built-in catalogue.
func OpenAt(ctx context.Context, typ string, credentials map[string]json.RawMessage, o Options, object Object) (src Source, columns []api.Column, missing, err error) {
	return BuiltIn().OpenAt(ctx, typ, credentials, o, object)
}

// Details are those of the built-in catalogue.
func Details(typ string, credentials map[string]json.RawMessage) map[string]any {
	return BuiltIn().Details(typ, credentials)
}
