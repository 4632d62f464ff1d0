package mapping

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// restaurants is an object with a field of every sort.
func restaurants() *api.DestinationObject {
	field := func(name, kind string) api.DestinationField {
		return api.DestinationField{FullName: name, Type: kind, Createable: true, Updateable: true}
	}
	id := field("id", api.TypeInteger)
	id.CanBeInsertKey, id.CanBeUpdateKey, id.CanBeUpsertKey, id.RequiredForMapping = true, true, true, true
	code := field("code", api.TypeString)
	code.CanBeInsertKey = true
	born := field("born", api.TypeDate)
	born.Updateable = false
	changed := field("changed", api.TypeDateTime)
	changed.Createable = false
	frozen := field("frozen", api.TypeString)
	frozen.Createable, frozen.Updateable = false, false
	tags := field("tags", api.TypeString)
	tags.Array, tags.Operations, tags.PreserveValuesSupported = true, []string{"overwrite"}, true
	owner := field("owner", api.TypeInteger)
	owner.LookupObject = "people"
	return &api.DestinationObject{
		FullName: "restaurants", CanBeSyncDestination: true, SupportsFieldOrdering: true, AllowCaseSensitiveFields: true,
		SupportedOperations: []string{"upsert", "insert", "update", "mirror", "append"},
		Fields: []api.DestinationField{
			id, code, field("name", api.TypeString), field("open", api.TypeBoolean), field("stars", api.TypeFloat),
			field("seats", api.TypeInteger), field("price", api.TypeDecimal), born, changed, frozen, tags, owner,
			field("address", api.TypeString), field("a.b", api.TypeString),
		},
		AdvancedConfigurationFields: []api.AdvancedField{
			{Name: "region", Type: "string", SupportedValues: []string{"eu", "us"}}, {Name: "size", Type: "integer"},
		},
	}
}

// onCustom lets the sync write to a custom destination.
func onCustom(change func(s *Subject)) func(s *Subject) {
	return func(s *Subject) { s.DestinationType = api.TypeCustomAPI; change(s) }
}

// ofDataset adds a mapping to a sync that reads a dataset.
func ofDataset(m api.Mapping) func(s *Subject) {
	return func(s *Subject) {
		s.Config.SourceAttributes.Object = api.SourceObject{Type: api.ObjectDataset, ID: api.Ptr(int64(1))}
		add(m)(s)
	}
}

func people(object string) *api.DestinationObject {
	if object != "people" {
		return nil
	}
	return &api.DestinationObject{FullName: "people", Fields: []api.DestinationField{
		{FullName: "email", CanBeReferenceKey: true}, {FullName: "age"},
	}}
}

var columns = []api.Column{
	{Name: "ID", Kind: api.KindInteger}, {Name: "NAME", Kind: api.KindString}, {Name: "OPEN", Kind: api.KindBoolean},
	{Name: "BORN", Kind: api.KindDate}, {Name: "CHANGED", Kind: api.KindDateTime}, {Name: "TAGS", Kind: api.KindArray},
	{Name: "DATA", Kind: api.KindObject}, {Name: "STARS", Kind: api.KindFloat}, {Name: "first name", Kind: api.KindAny},
}

func mapColumn(column, to string) api.Mapping {
	return api.Mapping{From: api.MappingFrom{Type: api.FromColumn, Data: api.Raw(column)}, To: to}
}

func mapData(kind, data, to string) api.Mapping {
	return api.Mapping{From: api.MappingFrom{Type: kind, Data: json.RawMessage(data)}, To: to}
}

func valid() Subject {
	key := mapColumn("ID", "id")
	key.IsPrimaryIdentifier = true
	return Subject{
		Object: restaurants(), DestinationType: "crm", Columns: columns, ColumnsKnown: true, Lookups: people,
		ExistingAlerts: []int64{7},
		Config: api.SyncConfig{
			Operation:             api.OperationUpsert,
			DestinationAttributes: api.DestinationAttributes{ConnectionID: 1, Object: "restaurants"},
			SourceAttributes: api.SourceAttributes{ConnectionID: 2, Object: api.SourceObject{
				Type: "table", TableCatalog: api.Ptr("main"), TableSchema: api.Ptr("main"), TableName: api.Ptr("r"),
			}},
			Mappings: []api.Mapping{key, mapColumn("NAME", "name")},
		},
	}
}

// rule is one change of a valid sync and the expected problem: place and a
// part of the message, "" for nothing.
type rule struct {
	name    string
	change  func(s *Subject)
	problem string
}

func add(m api.Mapping) func(s *Subject) {
	return func(s *Subject) { s.Config.Mappings = append(s.Config.Mappings, m) }
}

func with(m api.Mapping, change func(m *api.Mapping)) func(s *Subject) {
	change(&m)
	return add(m)
}

func runRules(t *testing.T, rules []rule) {
	t.Helper()
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			s := valid()
			c.change(&s)
			problems := Check(s)
			if c.problem == "" {
				require.Empty(t, problems)
				Normalize(&s.Config)
				require.Empty(t, Check(s), "after Normalize")
				return
			}
			require.NotEmpty(t, problems)
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			require.Len(t, problems, 1, strings.Join(all, "\n"))
			field, message, _ := strings.Cut(c.problem, ": ")
			require.Equal(t, field, problems[0].Field, problems[0].Message)
			require.Contains(t, problems[0].Message, message)
		})
	}
}

func TestCheckOperation(t *testing.T) {
	operation := func(name string) func(s *Subject) { return func(s *Subject) { s.Config.Operation = name } }
	appendBy := func(to string) func(s *Subject) {
		return func(s *Subject) {
			s.Config.Operation = api.OperationAppend
			s.Object.Fields[0].RequiredForMapping = false
			s.Config.Mappings[0].To = to
		}
	}
	runRules(t, []rule{
		{"valid", func(*Subject) {}, ""},
		{"insert", operation("insert"), ""},
		{"update", operation("update"), ""},
		{"mirror", operation("mirror"), ""},
		{"unknown", operation("upsertt"), "operation: unknown value \"upsertt\""},
		{"missing", operation(""), "operation: is required"},
		{"not supported", func(s *Subject) { s.Object.SupportedOperations = []string{"insert"} }, "operation: it supports insert"},
		{"append by unique_id", appendBy("unique_id"), ""},
		{"append by an insert key", appendBy("code"), ""},
		{"append by another field", appendBy("stars"), "mappings[0].to: can_be_insert_key"},
		{"append on custom_api", func(s *Subject) { operation("append")(s); s.DestinationType = api.TypeCustomAPI },
			"operation: append is not possible on a custom destination"},
		{"object not for syncs", func(s *Subject) { s.Object.CanBeSyncDestination = false },
			"destination_attributes.object: cannot be the destination"},
		{"no destination", func(s *Subject) { s.Config.DestinationAttributes.ConnectionID = 0 },
			"destination_attributes.connection_id: is required"},
		{"no object", func(s *Subject) { s.Config.DestinationAttributes.Object = "" },
			"destination_attributes.object: is required"},
		{"a union of leads", func(s *Subject) { s.Config.DestinationAttributes.LeadUnion = api.Ptr("Lead") },
			"destination_attributes.lead_union_insert_to: no destination here has"},
		{"no union of leads", func(s *Subject) { s.Config.DestinationAttributes.LeadUnion = api.Ptr("") }, ""},
		{"why the object is not for syncs", func(s *Subject) {
			s.Object.CanBeSyncDestination = false
			s.Object.PrimaryIdentifierMappingAttributes = &api.PrimaryIdentifiers{Upsert: api.IdentifierRule{Notes: api.Ptr("This object cannot be written to: it is odd")}}
		}, "destination_attributes.object: cannot be the destination of a sync: it is odd"},
		{"no source", func(s *Subject) { s.Config.SourceAttributes.ConnectionID = 0 },
			"source_attributes.connection_id: is required"},
		{"nothing known", func(s *Subject) { s.Object, s.Lookups, s.ColumnsKnown, s.DestinationType = nil, nil, false, "" }, ""},
	})
}

func TestCheckSource(t *testing.T) {
	source := func(o api.SourceObject) func(s *Subject) {
		return func(s *Subject) { s.Config.SourceAttributes.Object = o }
	}
	const at = "source_attributes.object"
	runRules(t, []rule{
		{"table by id", source(api.SourceObject{Type: "table", ID: api.Ptr(int64(1))}), ""},
		{"table without name", source(api.SourceObject{Type: "table"}), at + ".table_name: is required"},
		{"dataset", source(api.SourceObject{Type: "dataset", ID: api.Ptr(int64(1))}), ""},
		{"dataset without id", source(api.SourceObject{Type: "dataset"}), at + ".id: is required"},
		{"dataset by its internal name", source(api.SourceObject{Type: "business_object_source", DatasetID: api.Ptr(int64(1))}), ""},
		{"model by name", source(api.SourceObject{Type: "model", Name: api.Ptr("m")}), ""},
		{"model without name", source(api.SourceObject{Type: "model"}), at + ".id: is required"},
		{"topic", source(api.SourceObject{Type: "topic", ID: api.Ptr(int64(1))}), ""},
		{"topic without id", source(api.SourceObject{Type: "topic"}), at + ".id: is required"},
		{"unknown", source(api.SourceObject{Type: "view"}), at + ".type: unknown value"},
		{"segment of a dataset", func(s *Subject) {
			s.Config.SourceAttributes.Object = api.SourceObject{Type: "dataset", ID: api.Ptr(int64(1))}
			s.Config.FilterSegmentID = api.Ptr(int64(4))
		}, ""},
		{"segment of a table", func(s *Subject) { s.Config.FilterSegmentID = api.Ptr(int64(4)) }, "filter_segment_id: type dataset"},
		{"segment without id", func(s *Subject) {
			s.Config.SourceAttributes.Object = api.SourceObject{Type: "dataset", ID: api.Ptr(int64(1))}
			s.Config.FilterSegmentID = api.Ptr(int64(0))
		}, "filter_segment_id: above 0"},
		{"cohort", func(s *Subject) { s.Config.CohortID = api.Ptr(int64(6)) }, "cohort_id: not supported"},
	})
}

func TestCheckFrom(t *testing.T) {
	const at = "mappings[2].from"
	runRules(t, []rule{
		{"unknown type", add(mapData("colunm", `"NAME"`, "code")), at + `.type: unknown value "colunm"`},
		{"unknown column", add(mapColumn("NAM", "code")), at + `.data: no column "NAM" (did you mean "NAME"?)`},
		{"column in another case", add(mapColumn("name", "code")), at + `.data: did you mean "NAME"?`},
		{"column as a number", add(mapData("column", `5`, "code")), at + ".data: must be a string"},
		{"no data", add(mapData("column", ``, "code")), at + ".data: is required"},
		{"null data", add(mapData("constant_value", `null`, "code")), at + ".data: is required"},
		{"text", add(mapData("constant_value", `{"value":"x","basic_type":"text"}`, "code")), ""},
		{"text as number", add(mapData("constant_value", `{"value":5,"basic_type":"text"}`, "code")), at + ".data.value: is not a text"},
		{"number", add(mapData("constant_value", `{"value":5,"basic_type":"number"}`, "seats")), ""},
		{"number as text", add(mapData("constant_value", `{"value":"5","basic_type":"number"}`, "seats")), at + ".data.value: is not a number"},
		{"boolean", add(mapData("constant_value", `{"value":true,"basic_type":"boolean"}`, "open")), ""},
		{"boolean as text", add(mapData("constant_value", `{"value":"true","basic_type":"boolean"}`, "open")), at + ".data.value: is not a boolean"},
		{"date_time", add(mapData("constant_value", `{"value":"2021-03-29T16:32:23Z","basic_type":"date_time"}`, "changed")), ""},
		{"datetime", add(mapData("constant_value", `{"value":"2021-03-29","basic_type":"datetime"}`, "born")), ""},
		{"no time", add(mapData("constant_value", `{"value":"soon","basic_type":"datetime"}`, "changed")), at + ".data.value: is not a datetime"},
		{"unknown basic_type", add(mapData("constant_value", `{"value":"x","basic_type":"string"}`, "code")), at + ".data.basic_type: one of boolean"},
		{"no value", add(mapData("constant_value", `{"basic_type":"text"}`, "code")), at + ".data.value: is required"},
		{"unknown key of a constant", add(mapData("constant_value", `{"value":"x","type":"text"}`, "code")), at + ".data: must be an object"},
		{"constant does not fit", add(mapData("constant_value", `{"value":2.5,"basic_type":"number"}`, "seats")), at + ".data.value: not a whole number"},
		{"template", add(mapData("liquid_template", `{"liquid_template":"{{ record['NAME'] | upcase }}"}`, "code")), ""},
		{"bare template", add(mapData("liquid_template", `"{{ record.NAME }} {{ record[\"first name\"] }}"`, "code")), ""},
		{"template as a number", add(mapData("liquid_template", `5`, "code")), at + ".data: must be an object"},
		{"template with another key", add(mapData("liquid_template", `{"template":"x"}`, "code")), at + ".data: must be an object"},
		{"template does not parse", add(mapData("liquid_template", `"{{ record['ID' }}"`, "code")),
			at + `.data: Liquid syntax error: Expected close_square but found end_of_string in "{{ record['ID' }}"`},
		{"template reads an unknown column", add(mapData("liquid_template", `"{{ record['NAMEE'] }}"`, "code")),
			at + `.data: Column being referenced in template can't be found in data source [NAMEE] (did you mean "NAME"?)`},
		{"template with an unknown variable", add(mapData("liquid_template", `"{{ name }}"`, "code")),
			at + ".data: [expr] unknown variable `name`"},
		{"template with an unknown filter", add(mapData("liquid_template", `"{{ record.ID | upcas }}"`, "code")),
			at + ".data: undefined filter upcas"},
		{"run id", add(mapData("sync_metadata", `"sync_run_id"`, "seats")), ""},
		{"unknown metadata", add(mapData("sync_metadata", `"run"`, "seats")), at + ".data: one of sync_run_id"},
		{"membership", ofDataset(mapData("segment_membership", `{"identify_by":"name"}`, "tags")), ""},
		{"membership by id", ofDataset(mapData("segment_membership", `{"identify_by":"id"}`, "tags")), at + ".data.identify_by: unknown value"},
		{"membership by something", ofDataset(mapData("segment_membership", `{"identify_by":"colour"}`, "tags")), at + ".data.identify_by: unknown value"},
		{"membership of a table", add(mapData("segment_membership", `{"identify_by":"name"}`, "tags")), at + ".data: a table has none"},
		{"compound_key", add(mapData("compound_key", `{}`, "code")), at + ".type: made by the service only"},
	})
}

func TestCheckFields(t *testing.T) {
	custom := func(change func(s *Subject)) func(s *Subject) {
		return func(s *Subject) { s.Object.AllowCustomFields = true; change(s) }
	}
	generated := func(m *api.Mapping) { m.GenerateField = true; m.FieldType = api.Ptr("string") }
	const at = "mappings[2]"
	runRules(t, []rule{
		{"unknown field", add(mapColumn("NAME", "nam")), at + `.to: no field "nam" (did you mean "name"?)`},
		{"no field", add(mapColumn("NAME", "")), at + ".to: is required"},
		{"custom field", custom(add(mapColumn("NAME", "nickname"))), ""},
		{"generated field", custom(with(mapColumn("NAME", "nickname"), generated)), ""},
		{"generated where none are", with(mapColumn("NAME", "nickname"), generated), at + ".generate_field: does not create fields"},
		{"generated though it is there", with(mapColumn("NAME", "code"), generated), at + ".generate_field: does not create fields"},
		{"generated in a field", with(mapColumn("NAME", "address.city"), generated), at + ".generate_field: does not create fields"},
		{"generated of a type", custom(func(s *Subject) {
			s.Object.SupportedCustomFieldTypes = &[]api.CustomFieldType{{Type: "integer"}}
			with(mapColumn("NAME", "nickname"), generated)(s)
		}), at + ".field_type: cannot create fields of type string"},
		{"unknown field_type", custom(with(mapColumn("NAME", "nickname"), func(m *api.Mapping) {
			m.GenerateField, m.FieldType = true, api.Ptr("text")
		})), at + ".field_type: unknown value"},
		{"twice", add(mapColumn("NAME", "name")), at + ".to: already written by mappings[1]"},
		{"twice but for case", custom(func(s *Subject) {
			s.Object.AllowCaseSensitiveFields = false
			s.Config.Mappings = append(s.Config.Mappings, mapColumn("NAME", "Nick"), mapColumn("NAME", "nick"))
		}), "mappings[3].to: already written by mappings[2]"},
		{"nested", add(mapColumn("NAME", "address.city")), ""},
		{"nested full name", add(mapColumn("NAME", "a.b")), ""},
		{"nested in a number", add(mapColumn("NAME", "seats.first")), at + `.to: "seats" is an integer and holds no object`},
		{"nested in a number of an object with custom fields", custom(add(mapColumn("NAME", "seats.first"))), at + ".to: holds no object"},
		{"nested in an array", add(mapColumn("NAME", "tags.first")), at + ".to: holds no object"},
		{"nested on a custom destination", onCustom(add(mapColumn("NAME", "address.city"))), at + `.to: declares no field "address.city"`},
		{"declared with a dot on a custom destination", onCustom(add(mapColumn("NAME", "a.b"))), ""},
		{"created with a dot on a custom destination", onCustom(custom(add(mapColumn("NAME", "address.city")))), ""},
		{"nested in nothing on a custom destination", onCustom(add(mapColumn("NAME", "place.city"))), at + `.to: no field "place.city"`},
		{"nested in nothing", add(mapColumn("NAME", "place.city")), at + ".to: no field"},
		{"nested with an empty part", add(mapColumn("NAME", "address..city")), at + ".to: empty part"},
		{"part of a mapped field", func(s *Subject) {
			s.Config.Mappings = append(s.Config.Mappings, mapColumn("NAME", "address.city"), mapColumn("NAME", "address"))
		}, "mappings[2].to: is a part of the field that mappings[3] writes"},
		{"createable on insert", func(s *Subject) { s.Config.Operation = "insert"; add(mapColumn("CHANGED", "changed"))(s) },
			at + ".to: createable"},
		{"createable on upsert", add(mapColumn("CHANGED", "changed")), ""},
		{"updateable on update", func(s *Subject) { s.Config.Operation = "update"; add(mapColumn("BORN", "born"))(s) },
			at + ".to: updateable"},
		{"updateable on upsert", add(mapColumn("BORN", "born")), ""},
		{"neither", add(mapColumn("NAME", "frozen")), at + ".to: neither created nor changed"},
		{"required", func(s *Subject) {
			s.Object.Fields[2].RequiredForMapping = true
			s.Config.Mappings = s.Config.Mappings[:1]
		}, `mappings: the field "name" is required`},
		{"overwrite", with(mapColumn("TAGS", "tags"), func(m *api.Mapping) { m.Operation = api.Ptr("overwrite") }), ""},
		{"merge", with(mapColumn("TAGS", "tags"), func(m *api.Mapping) { m.Operation = api.Ptr("merge") }), at + ".operation: does not offer merge"},
		{"merge of a scalar", with(mapColumn("NAME", "code"), func(m *api.Mapping) { m.Operation = api.Ptr("merge") }), at + ".operation: only for arrays"},
		{"unknown operation", with(mapColumn("TAGS", "tags"), func(m *api.Mapping) { m.Operation = api.Ptr("add") }), at + ".operation: unknown value"},
		{"preserve", with(mapColumn("TAGS", "tags"), func(m *api.Mapping) { m.PreserveValues = true }), ""},
		{"preserve elsewhere", with(mapColumn("NAME", "code"), func(m *api.Mapping) { m.PreserveValues = true }), at + ".preserve_values: does not support"},
		{"negative position", with(mapColumn("NAME", "code"), func(m *api.Mapping) { m.Position = api.Ptr(int64(-1)) }), at + ".position: 0 or more"},
	})
}

func TestCheckLookups(t *testing.T) {
	lookup := func(to, object, field string) func(s *Subject) {
		return with(mapColumn("NAME", to), func(m *api.Mapping) {
			m.LookupObject, m.LookupField = &object, &field
		})
	}
	const at = "mappings[2]"
	runRules(t, []rule{
		{"lookup", lookup("owner", "people", "email"), ""},
		{"both empty", lookup("code", "", ""), ""},
		{"no field", lookup("owner", "people", ""), at + ".lookup_field: is required"},
		{"no object", lookup("owner", "", "email"), at + ".lookup_object: is required"},
		{"other object", lookup("owner", "cities", "email"), at + `.lookup_object: refers to "people"`},
		{"no reference", lookup("code", "people", "email"), at + ".lookup_object: not a reference"},
		{"not by this field", lookup("owner", "people", "age"), at + ".lookup_field: can_be_reference_key"},
		{"unknown field", lookup("owner", "people", "emial"), at + `.lookup_field: did you mean "email"?`},
		{"object unknown", func(s *Subject) { lookup("owner", "people", "x")(s); s.Lookups = nil }, ""},
	})
}

func TestCheckIdentifier(t *testing.T) {
	runRules(t, []rule{
		{"none", func(s *Subject) { s.Config.Mappings[0].IsPrimaryIdentifier = false }, "mappings: it may be id"},
		{"no mapping at all", func(s *Subject) {
			s.Config.Mappings = nil
			s.Object.Fields[0].RequiredForMapping = false
		}, "mappings: at least one mapping"},
		{"two", func(s *Subject) { s.Config.Mappings[1].IsPrimaryIdentifier = true }, "mappings[1].is_primary_identifier: only one"},
		{"not a key", func(s *Subject) {
			s.Config.Mappings[0].IsPrimaryIdentifier = false
			s.Config.Mappings[1].IsPrimaryIdentifier = true
		}, "mappings[1].to: can_be_upsert_key"},
		{"key of another operation", func(s *Subject) {
			s.Config.Mappings[0].IsPrimaryIdentifier = false
			s.Config.Mappings = append(s.Config.Mappings, mapColumn("NAME", "code"))
			s.Config.Mappings[2].IsPrimaryIdentifier = true
		}, "mappings[2].to: can_be_upsert_key"},
		{"key of insert", func(s *Subject) {
			s.Config.Operation = "insert"
			s.Config.Mappings[0].IsPrimaryIdentifier = false
			s.Config.Mappings = append(s.Config.Mappings, mapColumn("NAME", "code"))
			s.Config.Mappings[2].IsPrimaryIdentifier = true
		}, ""},
		{"from a template", func(s *Subject) {
			s.Config.Mappings[0].From = api.MappingFrom{Type: "liquid_template", Data: api.Raw("{{ record.ID }}")}
		}, ""},
		{"from a constant", func(s *Subject) {
			s.Config.Mappings[0].From = api.MappingFrom{Type: "constant_value", Data: json.RawMessage(`{"value":1,"basic_type":"number"}`)}
		}, "mappings[0].from.type: differs from record to record"},
		{"part of a field", func(s *Subject) {
			s.Config.Mappings[0].IsPrimaryIdentifier = false
			s.Config.Mappings = append(s.Config.Mappings, mapColumn("NAME", "address.city"))
			s.Config.Mappings[2].IsPrimaryIdentifier = true
		}, "mappings[2].to: part of a field"},
		{"preserve", func(s *Subject) {
			s.Object.Fields[0].PreserveValuesSupported = true
			s.Config.Mappings[0].PreserveValues = true
		}, "mappings[0].preserve_values: primary identifier"},
		{"object without identifier", func(s *Subject) {
			s.Object.PrimaryIdentifierMappingAttributes = &api.PrimaryIdentifiers{Mirror: api.IdentifierRule{Required: true}}
			s.Config.Mappings[0].IsPrimaryIdentifier = false
		}, ""},
		{"but with one for mirror", func(s *Subject) {
			s.Object.PrimaryIdentifierMappingAttributes = &api.PrimaryIdentifiers{Mirror: api.IdentifierRule{Required: true}}
			s.Config.Operation = "mirror"
			s.Config.Mappings[0].IsPrimaryIdentifier = false
		}, "mappings: is_primary_identifier"},
		{"append by high-water mark", func(s *Subject) {
			s.Config.Operation = "append"
			s.Config.Mappings[0].IsPrimaryIdentifier = false
			s.Config.HighWaterMarkAttribute = api.Ptr("CHANGED")
		}, ""},
	})
}

func TestCheckCasts(t *testing.T) {
	kinds := []api.Kind{
		api.KindBoolean, api.KindInteger, api.KindFloat, api.KindDecimal, api.KindString, api.KindDate,
		api.KindDateTime, api.KindArray, api.KindObject, api.KindBinary, api.KindAny,
	}
	// One letter per kind in this order: y it can be, n it never can.
	table := map[string]string{
		api.TypeBoolean: "yynnynnnnny", api.TypeInteger: "yyyyynnnnny", api.TypeFloat: "nyyyynnnnny",
		api.TypeDecimal: "nyyyynnnnny", api.TypeString: "yyyyyyynyyy", api.TypeDate: "nnnnyyynnny",
		api.TypeDateTime: "nnnnyyynnny", "array": "nnnnynnynny",
	}
	for fieldType, row := range table {
		for i, kind := range kinds {
			field := &api.DestinationField{Type: fieldType}
			if fieldType == "array" {
				field = &api.DestinationField{Type: api.TypeString, Array: true}
			}
			require.Equal(t, row[i] == 'y', neverFits(kind, field) == "", "%s into %s", kind, fieldType)
		}
	}
	runRules(t, []rule{
		{"object to boolean", add(mapColumn("DATA", "open")), "mappings[2].from: an object can never become a boolean"},
		{"array to text", add(mapColumn("TAGS", "code")), "mappings[2].from: an array can never become a string"},
		{"number to array", add(mapColumn("ID", "tags")), "mappings[2].from: an integer can never become an array of string"},
		{"any to anything", add(mapColumn("first name", "born")), ""},
	})
}
