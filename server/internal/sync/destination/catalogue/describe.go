package catalogue

import (
	"net/url"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/connector"
	"github.com/destkit/destkit/server/api"
)

// Refuses returns what is wrong with credentials that hold the catalogue's word for it, "" for
// others: a connection test fails, and so does every call.
func (e *Entry) Refuses(credentials map[string]connector.Raw) string {
	if id := e.Refuse.Refused(credentials); id != "" {
		return e.Label + " refuses the " + id
	}
	return ""
}

// Details show every credential that is no password, and what the account is known by
// (spec 2.2).
func (e *Entry) Details(credentials map[string]connector.Raw) (details map[string]any, account string) {
	details = map[string]any{}
	for _, f := range e.Credentials {
		if raw := credentials[f.ID]; !f.Password && connector.Has(raw) {
			details[f.ID] = raw
		} else if !f.Password && f.Default != nil {
			details[f.ID] = f.Default
		}
	}
	account = connector.Text(credentials[e.Account.From])
	if account == "" {
		account = connector.Text(credentials[e.Account.Or])
	}
	if u, err := url.Parse(account); err == nil && u.Host != "" {
		account = u.Host
	}
	return details, account
}

// Secrets lists the passwords. The word that fails a test is documented, so it
// is none, and messages may name it.
func (e *Entry) Secrets(credentials map[string]connector.Raw) []string {
	var list []string
	for _, f := range e.Credentials {
		if s := connector.Text(credentials[f.ID]); f.Password && s != e.Refuse.Word && connector.Has(credentials[f.ID]) {
			list = connector.Secrets(list, credentials[f.ID])
		}
	}
	return list
}

// Rule maps how a mirror or an upsert identifies records (spec 2.3).
func (e Identifier) Rule() api.IdentifierRule {
	rule := api.IdentifierRule{Required: !e.Optional, HideDestinationKey: e.Hide}
	if e.Notes != "" {
		rule.Notes = api.Ptr(e.Notes)
	}
	return rule
}

// Describe maps one field (spec 2.5); the store's description wins.
func (f *Field) Describe(found rpc.Field) api.DestinationField {
	operations := slices.Clone(f.Operations)
	if len(operations) == 0 {
		operations = []string{"overwrite"}
	}
	return api.DestinationField{
		Label: found.Label, FullName: f.FullName, Createable: found.Createable, Updateable: found.Updateable,
		Operations: operations, Array: found.Array, PreserveValuesSupported: f.PreserveValues,
		RequiredForMapping: found.Required,
		CanBeUpsertKey:     slices.Contains(f.Keys, "upsert"),
		CanBeUpdateKey:     slices.Contains(f.Keys, "update"),
		CanBeInsertKey:     slices.Contains(f.Keys, "insert"),
		CanBeReferenceKey:  slices.Contains(f.Keys, "reference"),
		LookupObject:       f.LookupObject, Type: found.Type,
	}
}

// Describe maps one advanced configuration field (spec 2.4); order counts
// from 1.
func (a *Parameter) Describe(order int) api.AdvancedField {
	d := api.AdvancedField{
		Name: a.Name, Type: a.Type, Label: a.Label, InputType: a.InputType, Placeholder: a.Placeholder,
		SortOrder: order, Required: a.Required, SupportedValues: slices.Clone(a.SupportedValues),
	}
	if a.Default != nil {
		d.Default = api.Raw(a.Default)
	}
	return d
}
