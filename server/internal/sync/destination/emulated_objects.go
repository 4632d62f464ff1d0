package destination

import (
	"context"
	"slices"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// Objects merges the catalogue with the store's answers: fields that were
// created on write are included, and removed ones are not.
func (c *emulatedConnection) Objects(ctx context.Context) ([]*api.DestinationObject, error) {
	found, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	list := []*api.DestinationObject{}
	for i := range found {
		if o := c.entry.Object(found[i].APIName); o != nil {
			list = append(list, describeObject(o, &found[i]))
		} else { // added to the store by its own means
			list = append(list, c.describe(&found[i]))
		}
	}
	return list, nil
}

// describeObject maps one object of the catalogue (spec 2.3).
func describeObject(o *catalogue.Object, found *wireObject) *api.DestinationObject {
	types := []api.CustomFieldType{}
	for _, t := range o.CustomFieldTypes {
		types = append(types, api.CustomFieldType(t))
	}
	if o.CustomFields && len(types) == 0 {
		types = everyType()
	}
	d := &api.DestinationObject{
		Label: found.Label, FullName: o.FullName, SupportedOperations: slices.Clone(o.Operations),
		PrimaryIdentifierMappingAttributes: &api.PrimaryIdentifiers{Upsert: o.Upsert.Rule(), Mirror: o.Mirror.Rule()},
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
		a := o.AdvancedParameters[i].Describe(i + 1)
		d.AdvancedConfigurationFields = append(d.AdvancedConfigurationFields, a)
		d.ConfigurableFieldDefinitions[a.Name] = a.Type
	}
	own := o.OwnFields()
	for _, f := range found.fields {
		_, kept := own[f.APIName]
		switch known := o.Field(f.APIName); {
		case f.APIName == o.HiddenIdentifier, kept:
		case known != nil:
			d.Fields = append(d.Fields, known.Describe(f))
		default: // created on write
			d.Fields = append(d.Fields, describeField(f, nil))
		}
	}
	return d
}
