package destsim

import "testing"

// one is a violation that a single glance sees.
func one(id, glance, part string) sighting {
	return sighting{id: id, sees: map[string]string{glance: part}}
}

// objectSighting is seen wherever list_objects is called.
func objectSighting(id, part string) sighting {
	return sighting{id: id, sees: map[string]string{"objects": part, "objects twice": part + "\n"}}
}

// eventSighting is seen in the fields of the last object.
func eventSighting(id, part string) sighting {
	return sighting{id: id, sees: map[string]string{"fields of event": part}, blur: []string{"a new field, listed"}}
}

const (
	contactListed = `{"object_api_name":"contact","label":"Contact"}`
	orderListed   = `{"object_api_name":"order","label":"Order"}`
	eventListed   = `{"object_api_name":"event","label":"Event","can_create_fields":"on_write"}`
	properties    = `,"createable":true,"updateable":true,`
)

// eventField is one field of the object event as it is listed, up to its type.
func eventField(name, label, identifier, required string) string {
	return `{"field_api_name":"` + name + `","label":"` + label + `","identifier":` + identifier + `,"required":` + required
}

func TestViolatePlanning(t *testing.T) {
	last := eventField("occurred_at", "Occurred at", "false", "false")
	whole := last + properties + `"type":"date_time","array":false}`
	rows := []sighting{
		objectSighting("OBJ-001", `{"objects":`+contactListed+`}`),
		objectSighting("OBJ-001.2", `{"can_create_fields":"on_write","object_api_name":"event"}]}`),
		objectSighting("OBJ-002", `{"objects":[]}`),
		objectSighting("OBJ-003", `{"objects":[`+contactListed+`,`+orderListed+`,`+eventListed+`,`+eventListed+`]}`),
		{id: "OBJ-004", sees: map[string]string{
			"objects":       orderListed + `,{"object_api_name":"event_1","label":"Event","can_create_fields":"on_write"}]}`,
			"objects twice": orderListed + `,{"object_api_name":"event_2","label":"Event","can_create_fields":"on_write"}]}`,
		}},
		{id: "OBJ-005", sees: map[string]string{
			"a new field":         `{"identifier":"a","success":true}]}` + "\n" + `"a" is {"event_id":"a"}`,
			"a new field, listed": whole + `]}`,
			"one custom and bad":  `"a" is {"event_id":"a"}`,
		}},
		{id: "OBJ-005.3", sees: map[string]string{"a new field": `"a" is {"event_id":"a","zz":null}`, "one custom and bad": `"a" is {"event_id":"a","zz":null}`}},
		one("OBJ-005.2", "a new field, listed", whole+`]}`),

		eventSighting("FLD-001", `"field_api_name":"event_id","identifier":"true"`),
		eventSighting("FLD-001.2", `{"array":false,"field_api_name":"occurred_at","identifier":false,"label":"Occurred at","required":false,"type":"date_time","updateable":true}`),
		eventSighting("FLD-002", whole+`,`+whole+`]}`),
		eventSighting("FLD-003", last+properties+`"type":"unknown","array":false}]}`),
		eventSighting("FLD-004", eventField("event_id", "Event ID", "false", "true")),
		eventSighting("FLD-005", eventField("event_id", "Event ID", "true", "false")),
		one("FLD-006", "fields of contact", eventField("birth_date", "Birth date", "true", "false")+properties+`"type":"date"`),
		one("FLD-007", "fields of contact", eventField("last_name", "Last name", "false", "true")+`,"createable":false,"updateable":true`),
		eventSighting("FLD-008", last+`,"createable":false,"updateable":false,"type":"date_time"`),
		one("FLD-009", "fields of unknown", `"result":{"fields":[{"field_api_name":"email"`),
		one("FLD-009.2", "fields of unknown", `"result":{"fields":[]}`),
		{id: "FLD-010", sees: map[string]string{
			"fields of contact": `{"fields":[]}`, "fields of order": `{"fields":[]}`, "fields of event": `{"fields":[]}`, "fields of relabelled": `{"fields":[]}`,
		}},
		one("FLD-015", "fields of relabelled", `"result":{"fields":[{"field_api_name":"email"`),
		one("FLD-015.2", "fields of relabelled", "name and label do not match"),

		one("OPS-001", "operations of event", `{"operations":["insert","upsert","append"]}`),
		one("OPS-001.2", "operations of event", `{"operations":"insert"}`),
		one("OPS-002", "operations of event", `{"operations":[]}`),
		one("OPS-002.2", "operations of event", `{"operations":["insert","upsert","insert"]}`),
		one("OPS-003", "operations of unknown", `{"operations":["upsert","insert","update","mirror"]}`),
	}
	testSightings(t, planningViolations(), append(rows, declaredSightings()...))
}

// declaredSightings are those of batches that do not keep the declarations.
func declaredSightings() []sighting {
	return []sighting{
		one("FLD-011", "negative", `"a" is {"email":"a","last_name":"x","age":"-42"}`),
		{id: "FLD-012", sees: map[string]string{
			"numbers":          `"error":{"code":-32602,"message":"unknown identifier \"order_id\""}` + "\n1 is ",
			"numbers inserted": `unknown identifier`,
		}},
		{id: "FLD-013", sees: map[string]string{
			"by a name":         `[{"identifier":"y","success":true}]`,
			"by an absent name": `[{"identifier":null,"success":false,`,
		}},
		{id: "OPS-004", sees: map[string]string{
			"update three absent": `{"record_results":[]}`,
			"update two":          `{"record_results":[]}` + "\n" + `"a" is {"email":"a","last_name":"y"}`,
			"update one":          `{"record_results":[]}` + "\n" + `"a" is {"email":"a","last_name":"y"}`,
			"half mapped update":  `{"record_results":[]}` + "\n" + `"a" is {"age":1,"email":"a","last_name":"y"}`,
		}},
		{id: "OPS-005", sees: map[string]string{
			"append":           `"success":true}]}` + "\n" + `"a" is {"email":"a","last_name":"x"}`,
			"delete of events": `{"record_results":[{"identifier":"a","success":true}]}`,
		}},
		{id: "OPS-006", sees: map[string]string{
			"delete two":         `-32602,"message":"unknown operation delete"}` + "\n" + `"a" is {"email":"a","last_name":"x"}`,
			"delete with a null": `unknown operation delete`,
			"only the key, gone": `unknown operation delete`,
		}},
	}
}
