package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/destination/catalogue"
)

// batchSizes notes the records of every batch that emulated destinations get.
type batchSizes struct {
	mu    sync.Mutex
	sizes []int
}

func (b *batchSizes) take() (sizes []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	sizes, b.sizes = b.sizes, nil
	return sizes
}

// newNoted is a world that notes them.
func newNoted(t *testing.T) (*syncWorld, *batchSizes) {
	noted := &batchSizes{}
	w := newSyncWorld(t, func(c *Config) {
		inner := c.Emulate
		c.Emulate = func(key string, objects []catalogue.EmulatedObject) (*destination.Emulated, error) {
			e, err := inner(key, objects)
			if err != nil {
				return nil, err
			}
			endpoint := e.Endpoint
			e.Endpoint = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				var call struct {
					Method string
					Params struct{ Records []json.RawMessage }
				}
				if json.Unmarshal(text, &call) == nil && call.Method == rpc.MethodSyncBatch {
					noted.mu.Lock()
					noted.sizes = append(noted.sizes, len(call.Params.Records))
					noted.mu.Unlock()
				}
				r.Body = io.NopCloser(bytes.NewReader(text))
				endpoint.ServeHTTP(rw, r)
			})
			return e, nil
		}
	})
	return w, noted
}

// kept are the fields of the records of an emulated object, in the order of their
// creation.
func (w *world) keptRecords(destination int64, object string) (records []map[string]any) {
	w.t.Helper()
	list := w.control("GET", fmt.Sprintf("/destinations/%d/records?object=%s", destination, object), nil).want(200).at("records").([]any)
	for _, one := range list {
		records = append(records, one.(map[string]any)["fields"].(map[string]any))
	}
	return records
}

// manyCustomers fills the source with rows from one number to another.
func (w *syncWorld) manyCustomers(from, to int) {
	w.changeSource(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', 'User ' || i FROM n`, from, to))
}

// TestBatchSizes: bulk_batch_size and batch_rows bound what one batch carries (spec 2.6).
func TestBatchSizes(t *testing.T) {
	w, noted := newNoted(t)
	w.manyCustomers(2, 450)
	salesforce, sheets := w.emulated("salesforce").id("data.id"), w.emulated("google_sheets").id("data.id")
	contact := []any{column("email", "Email", true), column("name", "LastName", false)}
	row := []any{column("name", "name", false)}
	largest := func(destination int64, object, operation string, mappings []any, advanced map[string]any) int {
		t.Helper()
		id := w.kept(map[string]any{
			"destination_attributes": map[string]any{"connection_id": destination, "object": object},
			"operation":              operation, "mappings": mappings, "advanced_configuration": advanced,
		}).id("data.id")
		run := w.runs(id)
		require.EqualValues(t, 450, run.id("data.records_updated"), string(run.text))
		return slices.Max(noted.take())
	}
	require.Greater(t, largest(salesforce, "Contact", "upsert", contact, map[string]any{}), 200, "without a word the store decides")
	require.Equal(t, 7, largest(salesforce, "Contact", "upsert", contact, map[string]any{"bulk_batch_size": 7}))
	require.Equal(t, 9, largest(sheets, "Sheet1", "append", row, map[string]any{"batch_rows": 9, "write_mode": "bottom"}))
	for value, message := range map[int]string{0: "must be from 1 to 10000, not 0", 10_001: "must be from 1 to 10000, not 10001"} {
		problems := w.refused(map[string]any{
			"destination_attributes": map[string]any{"connection_id": salesforce, "object": "Contact"}, "mappings": contact,
			"advanced_configuration": map[string]any{"bulk_batch_size": value},
		})
		require.Equal(t, message, problems["advanced_configuration.bulk_batch_size"])
	}
}

// TestSpreadsheetSettings: a sync's row settings are stored with it, hidden from
// clients, and never count as a difference (spec 2.6).
func TestSpreadsheetSettings(t *testing.T) {
	w := newSyncWorld(t)
	key := column("email", "id", true)
	body := w.spreadsheet(map[string]any{
		"operation": "upsert", "mappings": []any{key, column("name", "name", false), column("paid", "amount", false)},
		"advanced_configuration": map[string]any{"null_text": "n/a", "write_mode": "top", "notes": "from the shop"},
	})
	sheets := body["destination_attributes"].(map[string]any)["connection_id"].(int64)
	id := w.kept(body).id("data.id")
	require.Equal(t, "completed", w.runs(id).at("data.status"))
	row := w.keptRecords(sheets, "Sheet1")[0]
	require.Equal(t, "ada@example.com n/a top from the shop", fmt.Sprint(row["id"], " ", row["null_text"], " ", row["write_mode"], " ", row["row_note"]))
	require.Equal(t, [7]int64{1, 0, 0, 0, 0, 0, 0}, w.runs(id).counts(), "nothing has changed")
	require.Empty(t, w.control("POST", "/audit", map[string]any{"sync_id": id}).want(200).at("findings"))
	for _, object := range w.do("GET", fmt.Sprintf("/destinations/%d/objects", sheets), w.key, nil).want(200).at("data").([]any) {
		require.NotContains(t, fmt.Sprint(object.(map[string]any)["fields"]), "row_note", "clients do not see what the application keeps")
	}
	body["mappings"] = []any{key, column("name", "row_note", false)}
	require.Contains(t, w.refused(body)["mappings[1].to"], "keeps the field")
}

// TestStampedSettings: every record carries the ids of its audience, membership
// and rule, or the default of the definition.
func TestStampedSettings(t *testing.T) {
	w := newSyncWorld(t)
	ads, salesforce := w.emulated("google_ads").id("data.id"), w.emulated("salesforce").id("data.id")
	run := func(destination int64, object string, body map[string]any) map[string]any {
		t.Helper()
		body["destination_attributes"] = map[string]any{"connection_id": destination, "object": object}
		w.runs(w.kept(body).id("data.id")).ended("completed")
		return w.keptRecords(destination, object)[0]
	}
	audience := map[string]any{"operation": "mirror", "mappings": []any{column("email", "email", true)}, "advanced_configuration": map[string]any{"audience_name": "Customers"}}
	member := run(ads, "customer_match_email", audience)
	require.Equal(t, "Customers", member["audience"])
	require.Equal(t, json.Number("540"), member["membership_days"])
	audience["advanced_configuration"] = map[string]any{"audience_name": "Guests", "membership_days": 30}
	ads = w.emulated("google_ads").id("data.id")
	member = run(ads, "customer_match_email", audience)
	require.Equal(t, "Guests", member["audience"])
	require.Equal(t, json.Number("30"), member["membership_days"])
	audience["advanced_configuration"] = map[string]any{"audience_name": "Guests", "membership_days": 541}
	require.Contains(t, w.refused(audience)["advanced_configuration.membership_days"], "from 1 to 540")

	contact := run(salesforce, "Contact", map[string]any{
		"mappings": []any{column("email", "Email", true), column("name", "LastName", false)}, "advanced_configuration": map[string]any{"assignment_rule_id": "01Q000000000007"},
	})
	require.Equal(t, "01Q000000000007", contact["AssignmentRuleId"])
}

// TestAdvancedConfigurationTakesWhatIsListed: for every object of every type the keys
// that its definitions list, and no other (spec 2.6, 2.4).
func TestAdvancedConfigurationTakesWhatIsListed(t *testing.T) {
	proves(t, "F-2.6-08")
	w := newSyncWorld(t, inDir(t))
	files := w.destinationOf("local_files", map[string]any{}).id("data.id")
	destinations := []int64{w.dest, files}
	for _, typ := range []string{"salesforce", "google_sheets", "google_ads"} {
		destinations = append(destinations, w.emulated(typ).id("data.id"))
	}
	every := map[string]bool{"no_such_key": true, "allow_empty_source": true, "delete_records": true}
	objects := map[int64][]any{}
	for _, d := range destinations {
		objects[d] = w.do("GET", fmt.Sprintf("/destinations/%d/objects", d), w.key, nil).want(200).at("data").([]any)
		for _, o := range objects[d] {
			for _, f := range o.(map[string]any)["advanced_configuration_field_definitions"].([]any) {
				every[f.(map[string]any)["name"].(string)] = true
			}
		}
	}
	for _, d := range destinations {
		for _, o := range objects[d] {
			object := o.(map[string]any)
			listed := map[string]bool{}
			for _, f := range object["advanced_configuration_field_definitions"].([]any) {
				listed[f.(map[string]any)["name"].(string)] = true
			}
			given := map[string]any{}
			for key := range every {
				given[key] = []any{} // of no type: a known key is refused for its type
			}
			problems := w.refused(map[string]any{
				"destination_attributes": map[string]any{"connection_id": d, "object": object["full_name"]}, "advanced_configuration": given,
			})
			for key := range every {
				message := problems["advanced_configuration."+key]
				require.Equal(t, listed[key], strings.HasPrefix(message, "must be"), "%s of %s: %q", key, object["full_name"], message)
				require.NotEmpty(t, message)
			}
		}
	}
}
