package destination

import (
	"context"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// Objects merges the catalogue with what the store answers: fields that were
// created on write are there, and what was taken away is not.
func (c *emulatedConnection) Objects(ctx context.Context) ([]*api.DestinationObject, error) {
	found, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	list := []*api.DestinationObject{}
	for i := range found {
		if o := c.entry.object(found[i].APIName); o != nil {
			list = append(list, o.describe(&found[i]))
		} else { // added to the store by its own means
			list = append(list, c.describe(&found[i]))
		}
	}
	return list, nil
}

// describe maps one object of the catalogue (spec 2.3).
func (o *objectEntry) describe(found *wireObject) *api.DestinationObject {
	types := []api.CustomFieldType{}
	for _, t := range o.CustomFieldTypes {
		types = append(types, api.CustomFieldType(t))
	}
	if o.CustomFields && len(types) == 0 {
		types = everyType()
	}
	d := &api.DestinationObject{
		Label: found.Label, FullName: o.FullName, SupportedOperations: slices.Clone(o.Operations),
		PrimaryIdentifierMappingAttributes: &api.PrimaryIdentifiers{Upsert: o.Upsert.rule(), Mirror: o.Mirror.rule()},
		AllowCustomFields:                  o.CustomFields, SupportedCustomFieldTypes: &types,
		AllowCaseSensitiveFields:     o.CaseSensitive,
		AdvancedConfigurationFields:  []api.AdvancedField{},
		SupportsFieldOrdering:        o.FieldOrdering,
		CanBeSyncDestination:         !o.ReadOnly && len(found.deviations) == 0,
		IsAudienceDestination:        api.Ptr(o.Audience != nil),
		Fields:                       []api.DestinationField{},
		ConfigurableFieldDefinitions: map[string]string{},
	}
	if o.ReadOnly {
		found.deviate("%s keeps it for itself, and syncs can only read it", o.FullName)
	}
	if len(found.deviations) > 0 { // or the schema of the store was changed
		d.PrimaryIdentifierMappingAttributes.Upsert.Notes = found.why()
		d.PrimaryIdentifierMappingAttributes.Mirror.Notes = found.why()
	}
	for i := range o.AdvancedParameters {
		a := o.AdvancedParameters[i].describe(i + 1)
		d.AdvancedConfigurationFields = append(d.AdvancedConfigurationFields, a)
		d.ConfigurableFieldDefinitions[a.Name] = a.Type
	}
	own := o.ownFields()
	for _, f := range found.fields {
		_, kept := own[f.APIName]
		switch known := o.field(f.APIName); {
		case f.APIName == o.HiddenIdentifier, kept:
		case known != nil:
			d.Fields = append(d.Fields, known.describe(f))
		default: // created on write
			d.Fields = append(d.Fields, describeField(f, nil))
		}
	}
	return d
}

// rule maps how a mirror or an upsert identifies records (spec 2.3).
func (e identifierEntry) rule() api.IdentifierRule {
	rule := api.IdentifierRule{Required: !e.Optional, HideDestinationKey: e.Hide}
	if e.Notes != "" {
		rule.Notes = api.Ptr(e.Notes)
	}
	return rule
}

// describe maps one field (spec 2.5); what the store says of it wins.
func (f *fieldEntry) describe(found rpc.Field) api.DestinationField {
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

// describe maps one advanced configuration field (spec 2.4); order counts
// from 1.
func (a *advancedEntry) describe(order int) api.AdvancedField {
	d := api.AdvancedField{
		Name: a.Name, Type: a.Type, Label: a.Label, InputType: a.InputType, Placeholder: a.Placeholder,
		SortOrder: order, Required: a.Required, SupportedValues: slices.Clone(a.SupportedValues),
	}
	if a.Default != nil {
		d.Default = api.Raw(a.Default)
	}
	return d
}
