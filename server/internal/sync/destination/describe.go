package destination

import (
	"context"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// Objects queries the endpoint and maps its replies (spec 2.3, 2.5).
func (c *customConnection) Objects(ctx context.Context) ([]*api.DestinationObject, error) {
	objects, err := c.objects(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]*api.DestinationObject, len(objects))
	for i := range objects {
		list[i] = c.describe(&objects[i])
	}
	return list, nil
}

// describe maps one object. One that deviates from the protocol is shown and
// cannot be a sync destination; the notes of its identifiers say why.
func (c *caller) describe(o *wireObject) *api.DestinationObject {
	d := &api.DestinationObject{
		Label: o.Label, FullName: o.APIName,
		SupportedOperations:          append([]string{}, o.operations...),
		AllowCustomFields:            o.CanCreateFields == rpc.CanCreateOnWrite,
		SupportedCustomFieldTypes:    &[]api.CustomFieldType{},
		AllowCaseSensitiveFields:     true, // field_api_name is a key, taken as it is
		AdvancedConfigurationFields:  []api.AdvancedField{},
		IsAudienceDestination:        api.Ptr(false),
		Fields:                       []api.DestinationField{},
		ConfigurableFieldDefinitions: map[string]string{},
	}
	if d.AllowCustomFields {
		types := everyType()
		d.SupportedCustomFieldTypes = &types
	}
	keys := false
	for _, f := range o.fields {
		field := describeField(f, o.operations)
		keys = keys || f.Identifier && keyable(f)
		d.Fields = append(d.Fields, field)
	}
	switch {
	case len(o.deviations) > 0:
	case len(o.operations) == 0:
		o.deviate("supported_operations names none")
	case !keys: // published: at least one identifier, string or integer, no array
		o.deviate("list_fields names no identifier of type string or integer")
	}
	notes := o.why()
	if notes != nil {
		notes = api.Ptr(c.clean.Foreign(*notes))
	}
	d.CanBeSyncDestination = notes == nil
	// spec 4.2, identifier rule: every plan has one identifier.
	rule := api.IdentifierRule{Required: true, Notes: notes}
	d.PrimaryIdentifierMappingAttributes = &api.PrimaryIdentifiers{Upsert: rule, Mirror: rule}
	return d
}

// describeField maps one field of the protocol; operations are those of its
// object.
func describeField(f rpc.Field, operations []string) api.DestinationField {
	key := f.Identifier && keyable(f)
	can := func(names ...string) bool {
		return key && slices.ContainsFunc(names, func(name string) bool { return slices.Contains(operations, name) })
	}
	return api.DestinationField{
		Label: f.Label, FullName: f.APIName, Createable: f.Createable, Updateable: f.Updateable,
		Operations: []string{"overwrite"}, Array: f.Array, RequiredForMapping: f.Required,
		CanBeUpsertKey: can(rpc.OperationUpsert, rpc.OperationMirror), // a mirror sends upsert batches
		CanBeUpdateKey: can(rpc.OperationUpdate),
		CanBeInsertKey: can(rpc.OperationInsert),
		Type:           f.Type,
	}
}

// keyable reports whether a field may be an identifier at all.
func keyable(f rpc.Field) bool {
	return !f.Array && (f.Type == rpc.TypeString || f.Type == rpc.TypeInteger)
}

// everyType lists the seven types, alone and as arrays.
func everyType() []api.CustomFieldType {
	var types []api.CustomFieldType
	for _, t := range rpc.FieldTypes() {
		types = append(types, api.CustomFieldType{Type: t}, api.CustomFieldType{Type: t, Array: true})
	}
	return types
}
