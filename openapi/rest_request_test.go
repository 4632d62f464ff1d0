package openapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// problemsOf sends a query, values of the path and a body through CheckRequest.
func problemsOf(t testing.TB, id, query, path, body string) []RESTProblem {
	t.Helper()
	o := findOperation(id)
	require.NotNil(t, o, id)
	r := httptest.NewRequest(o.Method, "/", nil)
	r.URL.RawQuery = query
	values := map[string]string{}
	for i, value := range strings.Fields(path) {
		values[o.path[i].name] = value
	}
	return o.CheckRequest(r, values, []byte(body))
}

// texts are the problems in words, with their kind.
func texts(problems []RESTProblem) []string {
	out := []string{}
	for _, p := range problems {
		text := p.Place + ": " + p.Field + ": " + p.Message
		for kind, is := range map[string]bool{" [unknown]": p.Unknown, " [missing]": p.Missing, " [malformed]": p.Malformed} {
			if is {
				text += kind
			}
		}
		out = append(out, text)
	}
	return out
}

func TestCheckParameters(t *testing.T) {
	for _, tc := range []struct {
		id, query, path string
		want            []string
	}{
		{"listSyncs", "", "", nil},
		{"listSyncs", "page=0&per_page=1000000&order=asc", "", nil}, // spec 8
		{"listSyncs", "&page=2&&", "", nil},
		{"listSyncs", "p%61ge=%32", "", nil},
		{"listSyncs", "page=-1", "", []string{"query.page: page: must be at least 0, is -1 [malformed]"}},
		{"listSyncs", "per_page=0", "", []string{"query.per_page: per_page: must be at least 1, is 0 [malformed]"}},
		{"listSyncs", "page=1.5", "", []string{`query.page: page: must be an integer, is "1.5" [malformed]`}},
		{"listSyncs", "page=+1", "", []string{`query.page: page: must be an integer, is " 1" [malformed]`}},
		{"listSyncs", "page=", "", []string{`query.page: page: must be an integer, is "" [malformed]`}},
		{"listSyncs", "page", "", []string{`query.page: page: must be an integer, is "" [malformed]`}},
		{"listSyncs", "page=9223372036854775808", "", []string{`query.page: page: must be an integer of at most 64 bits, is "9223372036854775808" [malformed]`}},
		{"listSyncs", "order=up", "", []string{`query.order: order: must be one of asc, desc, is "up" [malformed]`}},
		{"listSyncs", "order=ASC", "", []string{`query.order: order: must be one of asc, desc, is "ASC" [malformed]`}},
		{"listSyncs", "page=1&page=2", "", []string{"query.page: page: stands more than once in the query [malformed]"}},
		{"listSyncs", "page=abc&order=up&per-page=5", "", []string{
			`query.page: page: must be an integer, is "abc" [malformed]`,
			`query.order: order: must be one of asc, desc, is "up" [malformed]`,
			"query.per-page: per-page: is unknown; the query parameters are page, per_page, order [unknown]",
		}},
		{"listSyncs", "%zz", "", []string{"query: : cannot be read: it has a wrong % escape or a semicolon [malformed]"}},
		{"listSyncs", "page=1;order=asc", "", []string{"query: : cannot be read: it has a wrong % escape or a semicolon [malformed]"}},
		{"fetchSync", "", "309", nil},
		{"fetchSync", "", "9223372036854775807", nil},
		{"fetchSync", "", "abc", []string{`path.sync_id: sync_id: must be an integer, is "abc" [malformed]`}},
		{"fetchSync", "", "-1", []string{"path.sync_id: sync_id: must be at least 0, is -1 [malformed]"}},
		{"fetchSync", "", "1e3", []string{`path.sync_id: sync_id: must be an integer, is "1e3" [malformed]`}},
		{"fetchSync", "", "٣", []string{`path.sync_id: sync_id: must be an integer, is "٣" [malformed]`}},
		{"fetchSync", "", "", []string{`path.sync_id: sync_id: must be an integer, is "" [malformed]`}},
		{"fetchSync", "x=1", "309", []string{"query.x: x: is unknown; the operation has no query parameters [unknown]"}},
		{"fetchSync", "a.b%5B=1", "309", []string{`query.["a.b["]: ["a.b["]: is unknown; the operation has no query parameters [unknown]`}},
		{"fetchSourceTable", "", "a b", []string{
			`path.source_id: source_id: must be an integer, is "a" [malformed]`, `path.table_id: table_id: must be an integer, is "b" [malformed]`,
		}},
		{"fetchDestinationObject", "", "1 any.thing", nil},
		{"fetchDestinationObject", "", "1", []string{"path.object_full_name: object_full_name: must not be empty [malformed]"}},
		{"fetchRefreshObjectsStatus", "", "1", []string{"query.refresh_key: refresh_key: is required [missing]"}},
		{"fetchRefreshObjectsStatus", "refresh_key=7", "1", nil},
		{"listDatasets", "type=csv", "", []string{`query.type: type: must be sql, is "csv" [malformed]`}},
		{"triggerSync", "force_full_sync=false", "1", nil}, // a client sends it
		{"triggerSync", "force_full_sync=True", "1", []string{`query.force_full_sync: force_full_sync: must be true or false, is "True" [malformed]`}},
		{"fetchOwnWorkspace", "anything=%zz", "", nil}, // the document has no 400
		{"fetchRoot", "page=x", "", nil},
		{"listSyncs", "page=" + strings.Repeat("9", 100), "", []string{`query.page: page: must be an integer of at most 64 bits, is "` + strings.Repeat("9", 64) + `…" [malformed]`}},
	} {
		require.ElementsMatch(t, tc.want, texts(problemsOf(t, tc.id, tc.query, tc.path, "")), "%s ?%s %s", tc.id, tc.query, tc.path)
	}
	require.LessOrEqual(t, len(problemsOf(t, "listSyncs", strings.Repeat("x=1&", 100000), "", "")), maxProblems)
}

// syncWith is a good sync with parts replaced.
func syncWith(old, new string) string {
	const sync = `{"operation":"upsert","destination_attributes":{"connection_id":12,"object":"restaurant"},` +
		`"source_attributes":{"connection_id":7,"object":{"type":"dataset","id":61}},` +
		`"mappings":[{"from":{"type":"column","data":"id"},"to":"id","is_primary_identifier":true},{"from":{"type":"column","data":"n"},"to":"name"}]}`
	return strings.Replace(sync, old, new, 1)
}

func TestCheckSyncBody(t *testing.T) {
	const first = `"from":{"type":"column","data":"id"}`
	top := func(more string) string { return syncWith(`"operation"`, more+`,"operation"`) }
	for _, tc := range []struct {
		body string
		want []string
	}{
		{syncWith("", ""), nil},
		{"{}", []string{
			"body: destination_attributes: is required [missing]", "body: mappings: is required [missing]",
			"body: operation: is required [missing]", "body: source_attributes: is required [missing]",
		}},
		{`[]`, []string{"body: : must be an object, is an array"}},
		{`null`, []string{"body: : must not be null"}},
		{syncWith(`"upsert"`, `"replace"`), []string{`body: operation: must be one of append, insert, mirror, update, upsert, is "replace"`}},
		{syncWith(`"operation"`, `"opration"`), []string{"body: opration: is unknown; did you mean operation? [unknown]", "body: operation: is required [missing]"}},
		{syncWith(`"upsert"`, `5`), []string{"body: operation: must be one of append, insert, mirror, update, upsert, is 5"}},
		{syncWith(`"upsert"`, `null`), []string{"body: operation: must be one of append, insert, mirror, update, upsert, is null"}},
		{syncWith(`"connection_id":12`, `"connection_id":"12"`), []string{"body: destination_attributes.connection_id: must be an integer, is a string"}},
		{syncWith(`"connection_id":12`, `"connection_id":1.5`), []string{"body: destination_attributes.connection_id: must be an integer, is a number with a point, an exponent or too many digits"}},
		{syncWith(`"connection_id":12`, `"connection_id":12.0`), []string{"body: destination_attributes.connection_id: must be an integer, is a number with a point, an exponent or too many digits"}},
		{syncWith(`"connection_id":12`, `"connection_id":1e400`), []string{"body: destination_attributes.connection_id: must be an integer, is a number with a point, an exponent or too many digits"}},
		{syncWith(`"connection_id":12`, `"connection_id":`+strings.Repeat("9", 400)), []string{"body: destination_attributes.connection_id: must be an integer, is a number with a point, an exponent or too many digits"}},
		{syncWith(`"connection_id":12`, `"connection_id":-12`), []string{"body: destination_attributes.connection_id: must be at least 0, is -12"}},
		{syncWith(`"connection_id":12`, `"connection_id":9223372036854775808`), []string{"body: destination_attributes.connection_id: must be an integer, is a number with a point, an exponent or too many digits"}},
		{syncWith(`"object":"restaurant"`, `"object":""`), []string{"body: destination_attributes.object: must not be empty"}},
		{syncWith(`,"object":"restaurant"`, ``), []string{"body: destination_attributes.object: is required [missing]"}},
		{syncWith(first, `"from":{"type":"formula","data":"id"}`), []string{`body: mappings[0].from.type: must be one of column, compound_key, constant_value, liquid_template, segment_membership, sync_metadata, is "formula"`}},
		{syncWith(first, `"from":{"data":"id"}`), []string{"body: mappings[0].from.type: is required, must be one of column, compound_key, constant_value, liquid_template, segment_membership, sync_metadata [missing]"}},
		{syncWith(first, `"from":{"type":7,"data":"id"}`), []string{"body: mappings[0].from.type: must be a string, is a number"}},
		{syncWith(first, `"from":"id"`), []string{"body: mappings[0].from: must be an object, is a string"}},
		{syncWith(first, `"from":null`), []string{"body: mappings[0].from: must be an object, is null"}},
		{syncWith(first, `"from":{"type":"column","data":{}}`), []string{"body: mappings[0].from.data: must be a string, is an object"}},
		{syncWith(first, `"from":{"type":"constant_value","data":{"value":1,"basic_type":"money"}}`), []string{`body: mappings[0].from.data.basic_type: must be one of boolean, date_time, datetime, number, text, is "money"`}},
		{syncWith(first, `"from":{"type":"constant_value","data":{"value":1.5,"basic_type":"number"}}`), nil},
		{syncWith(first, `"from":{"type":"constant_value","data":{"value":[],"basic_type":"text"}}`), []string{"body: mappings[0].from.data.value: must be a string or a number or a boolean, is an array"}},
		{syncWith(first, `"from":{"type":"constant_value","data":{"value":null,"basic_type":"text"}}`), nil},
		{syncWith(first, `"from":{"type":"liquid_template","data":"{{ record['a'] }}"}`), nil},
		{syncWith(first, `"from":{"type":"liquid_template","data":{"liquid_template":"{{ record['a'] }}"}}`), nil},
		{syncWith(first, `"from":{"type":"liquid_template","data":5}`), []string{"body: mappings[0].from.data: must be a string or an object, is a number"}},
		{syncWith(first, `"from":{"type":"liquid_template","data":{"template":"x"}}`), []string{
			"body: mappings[0].from.data.template: is unknown [unknown]", "body: mappings[0].from.data.liquid_template: is required [missing]",
		}},
		{syncWith(`"to":"name"`, `"to":"name","colour":1,"lookup_feild":"a","Position":3`), []string{
			"body: mappings[1].Position: is unknown; did you mean position? [unknown]",
			"body: mappings[1].colour: is unknown [unknown]", "body: mappings[1].lookup_feild: is unknown; did you mean lookup_field? [unknown]",
		}},
		{syncWith(`"id":61`, `"table_name":"a"`), []string{"body: source_attributes.object.table_name: is unknown [unknown]", "body: source_attributes.object.id: is required [missing]"}},
		{syncWith(`"type":"dataset"`, `"type":"view"`), []string{`body: source_attributes.object.type: must be one of dataset, filter_segment_source, model, segment, table, topic, is "view"`}},
		{top(`"failed_record_notifications_threshold_percent":101`), []string{"body: failed_record_notifications_threshold_percent: must be at most 100, is 101"}},
		{top(`"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"daily","hour":24,"minute":60}}}`), []string{"body: mode.triggers.schedule.minute: must be at most 59, is 60"}},
		{top(`"mode":{"type":"triggered","triggers":{"schedule":{"frequency":"yearly"}}}`), []string{`body: mode.triggers.schedule.frequency: must be one of never, continuous, quarter_hourly, hourly, daily, weekly, expression, is "yearly"`}},
		{top(`"field_order":"random"`), []string{`body: field_order: must be one of alphabetical_column_name, mapping_order, is "random"`}},
		{top(`"label":null,"field_order":null,"mode":null,"triggers":null,"cron_expression":null,"id":"x","status":[],"match_rate_details":5`), nil},
		{top(`"label":"` + strings.Repeat("ü", 255) + `"`), nil},
		{top(`"label":"` + strings.Repeat("ü", 256) + `"`), []string{"body: label: must have at most 255 characters"}},
		{top(`"alert_attributes":[{"type":"FailureAlertConfiguration","send_for":"once","should_send_recovery":"no","options":{"threshold":1}}]`), []string{
			"body: alert_attributes[0].options.threshold: is unknown [unknown]",
			`body: alert_attributes[0].send_for: must be one of first_time, every_time, is "once"`,
			"body: alert_attributes[0].should_send_recovery: must be a boolean, is a string",
		}},
		{top(`"alert_attributes":[{"type":"InvalidRecordPercentAlertConfiguration","send_for":"first_time","should_send_recovery":true,"options":{"threshold":101}}]`), []string{
			"body: alert_attributes[0].options.threshold: must be at most 100, is 101",
		}},
		{top(`"advanced_configuration":{"a":1.5,"b":[null],"c":{"d":"e"}}`), nil},
		{top(`"advanced_configuration":null`), []string{"body: advanced_configuration: must not be null"}},
	} {
		require.Equal(t, append([]string{}, tc.want...), texts(problemsOf(t, "createSync", "", "", tc.body)), tc.body)
	}
}

// TestPartialUpdate: the live dialect forgives exactly the four fields.
func TestPartialUpdate(t *testing.T) {
	forgiven := 0
	for _, p := range problemsOf(t, "updateSync", "", "1", `{"paused":true,"mode":{}}`) {
		if p.Missing && p.TopLevel() {
			forgiven++
			continue
		}
		require.Equal(t, "mode.type is required", p.String())
	}
	require.Equal(t, 4, forgiven)
	empty := problemsOf(t, "updateSync", "", "1", "")
	require.Len(t, empty, 1)
	require.True(t, empty[0].Missing)
	require.False(t, empty[0].TopLevel(), "a body is needed in both dialects")
}

func TestCheckOtherBodies(t *testing.T) {
	for _, tc := range []struct {
		id, path, body string
		want           []string
	}{
		{"triggerSync", "1", "", nil},
		{"triggerSync", "1", " \n", nil},
		{"triggerSync", "1", `{"force_full_sync":"yes"}`, []string{"body: force_full_sync: must be a boolean, is a string"}},
		{"cancelSyncRun", "1", "{ what ever", nil}, // no body is expected, none is read
		{"createModel", "1", "", []string{"body: : is required: send a JSON object [missing]"}},
		{"createWorkspace", "", `{"name":""}`, []string{"body: name: must not be empty"}},
		{"createWorkspace", "", `{"name":null}`, []string{"body: name: must not be null"}},
		{"createWorkspace", "", `{"name":"株式会社 \u0000 👩‍👩‍👧"}`, nil},
		{"createWorkspace", "", `{"name":"a","notification_emails":["a@b","nobody"]}`, []string{"body: notification_emails[1]: must be an e-mail address"}},
		{"createInvitation", "", `{"email":"a@b","role":"owner"}`, []string{`body: role: must be one of admin, member, is "owner"`}},
		{"createInvitation", "", `{"email":"a@b","role":"member","workspaces":[{"id":1,"role":"viewer"},{"id":2}]}`, []string{"body: workspaces[1].role: is required [missing]"}},
		{"createWorkspaceInvitation", "1", `{"emails":[],"role":"viewer"}`, []string{"body: emails: must have at least one entry"}},
		{"createWorkspaceInvitation", "1", `{"emails":[` + strings.Repeat(`"a@b",`, 100) + `"a@b"],"role":"viewer"}`, []string{"body: emails: must have at most 100 entries"}},
		{"createWebhook", "", `{"name":"a","endpoint":"http://a","events":["sync.failed","sync.failed"]}`, []string{
			"body: endpoint: must be an https address", "body: events: must not have an entry twice",
		}},
		{"createTopic", "1", `{"name":"t","sample_message":{}}`, []string{"body: sample_message: must not be empty"}},
		{"createTopic", "1", `{"name":"t","sample_message":{"a":1.5e3,"b":{"c":[[]]}}}`, nil},
		{"createDestination", "", `{"service_connection":{"name":"a"},"type":"custom_api"}`, []string{
			"body: service_connection.credentials: is required [missing]", "body: service_connection.type: is required [missing]",
		}},
		{"updateDestination", "1", `{"service_connection":{},"type":null}`, nil},
		{"updateSource", "1", `{"connection":{"sync_engine":"turbo"}}`, []string{`body: connection.sync_engine: must be one of basic, advanced, is "turbo"`}},
		{"createSource", "", `{"connection":{"label":"a","type":"topic_log","credentials":{}}}`, nil},
		{"updateModel", "1 2", `{"columns":5,"dataset_id=":"x"}`, nil},
	} {
		require.Equal(t, append([]string{}, tc.want...), texts(problemsOf(t, tc.id, "", tc.path, tc.body)), "%s %s", tc.id, tc.body)
	}
}

func TestCheckMalformedBody(t *testing.T) {
	deep := strings.Repeat("[", maxDepth)
	for body, message := range map[string]string{
		"{":                       "at line 1, column 2: a name in quotes should stand here",
		"{\n  \"name\": \"ü\" x}": `at line 2, column 15: a comma or "}" should stand here`,
		`{"a" 1}`:                 "at line 1, column 6: a colon should stand here",
		`{"a":}`:                  "at line 1, column 6: a value should stand here",
		`{"a":tru}`:               "at line 1, column 6: a value should stand here",
		`{"a":01}`:                "at line 1, column 6: this is no number",
		`{"a":-}`:                 "at line 1, column 6: this is no number",
		`{"a":1}{}`:               "at line 1, column 8: there is something after the end of the value",
		`{"a":"x`:                 "at line 1, column 8: the text ends inside a string",
		`{"a":`:                   "at line 1, column 6: the text ends where a value should stand",
		`[1,]`:                    "at line 1, column 4: a value should stand here",
		`[1 2]`:                   `at line 1, column 4: a comma or "]" should stand here`,
		`{"a":"\q"}`:              "at line 1, column 6: this string has a wrong escape",
		"{\"a\":\"\xff\"}":        "at line 1, column 6: this string is not UTF-8",
		"{\"a\":\"x\ny\"}":        `at line 1, column 8: a control character stands in a string; write it as \u000a`,
		deep + "[" + `]`:          "at line 1, column 65: it nests more than 64 levels deep",
		`{"a":[` + strings.Repeat("0,", maxValues) + `0]}`: "at line 1, column 200003: it holds more than 100000 values",
		strings.Repeat("[", 1000000):                       "at line 1, column 65: it nests more than 64 levels deep",
	} {
		got := problemsOf(t, "createWorkspace", "", "", body)
		require.Len(t, got, 1)
		require.Equal(t, RESTProblem{Place: "body", Message: "is malformed JSON " + message, Malformed: true}, got[0])
	}
	for body, want := range map[string][]string{
		`{"name":"a","name":"b"}`: {"body: name: stands more than once in its object, again at line 1, column 13 [malformed]"},
		`{"name":"a","notification_emails":[],` + "\n" + `"n\u0061me":"b"}`: {"body: name: stands more than once in its object, again at line 2, column 1 [malformed]"},
	} {
		require.Equal(t, want, texts(problemsOf(t, "createWorkspace", "", "", body)))
	}
	nested := problemsOf(t, "createTopic", "", "1", `{"name":"t","sample_message":{"a":[{"b":1,"b":2}]}}`)
	require.Equal(t, "sample_message.a[0].b", nested[0].Field)
}

func TestCheckContentType(t *testing.T) {
	o := findOperation("createWorkspace")
	for kind, good := range map[string]bool{
		"": true, "application/json": true, "application/json;version=2": true, "Application/JSON; charset=utf-8": true, // published facts
		"text/plain": false, "application/x-www-form-urlencoded": false, "application/json;;": false, "multipart/form-data": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Content-Type", kind)
		problems := o.CheckRequest(r, nil, []byte(`{"name":"a"}`))
		require.Equal(t, good, len(problems) == 0, kind)
		if !good {
			require.Equal(t, "header.Content-Type must be application/json, the only form of a body", problems[0].String())
		}
	}
}

// TestSecretsAreNotShown: no message repeats anything below credentials or
// where a secret may be.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "hunter2-hunter2"
	for _, body := range []string{
		`{"service_connection":{"name":5,"type":"custom_api","credentials":"` + secret + `"}}`,
		`{"service_connection":{"name":"` + secret + `"x}`,
		`{"service_connection":{"name":"a","type":"custom_api","credentials":{"auth_token":"` + secret + `","auth_token":"` + secret + `"}}}`,
		`{"service_connection":{"name":"a","type":"custom_api","webhook_url":"` + secret + `"}}`,
		`{"service_connection":["` + secret + `"]}`,
	} {
		problems := problemsOf(t, "createDestination", "", "", body)
		require.NotEmpty(t, problems, body)
		require.NotContains(t, fmt.Sprint(problems), "hunter2", body)
	}
	require.NotContains(t, fmt.Sprint(problemsOf(t, "createWebhook", "", "", `{"name":"a","endpoint":"`+secret+`"}`)), "hunter2")
}

// TestManyProblems: a body of nothing but mistakes is answered briefly, and
// unknown fields, which a dialect forgives, never hide others.
func TestManyProblems(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"operation":"none"`)
	for i := range 1000 {
		fmt.Fprintf(&body, `,"a%d":1`, i)
	}
	problems := problemsOf(t, "updateSync", "", "1", body.String()+"}")
	require.Len(t, problems, maxProblems+1+1+3)
	unknown := 0
	for _, p := range problems {
		if p.Unknown {
			unknown++
		}
	}
	require.Equal(t, maxProblems+1, unknown)
	require.Equal(t, "body has 900 more problems like these", problems[len(problems)-1].String())

	mistakes := problemsOf(t, "createWorkspace", "", "", `{"name":"a","notification_emails":[`+strings.Repeat("1,", 5000)+"1]}")
	require.Len(t, mistakes, maxProblems+1)
}

func TestPlaces(t *testing.T) {
	require.Equal(t, `a[2].b-c["x.y"]["`+strings.Repeat("k", maxShown)+`…"].d`,
		place{{name: "a"}, {index: 2, isIndex: true}, {name: "b-c"}, {name: "x.y"}, {name: strings.Repeat("k", 100)}, {name: "d"}}.String())
	require.Equal(t, `[""]`, place{{name: ""}}.String())
	require.Equal(t, `"`+strings.Repeat("é", maxShown)+`…"`, quoted(strings.Repeat("é", 100)))
}
