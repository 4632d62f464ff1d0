package destsim

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
)

// TestViolationList: the first way has the bare id, and no way is left out; the kill
// matrix says the rest.
func TestViolationList(t *testing.T) {
	form, ways := regexp.MustCompile(`^([A-Z]+-\d{3})(?:\.(\d))?$`), map[string]int{}
	for _, v := range Violations() { // sorted
		m := form.FindStringSubmatch(v.ID)
		require.NotNil(t, m, v.ID)
		ways[m[1]]++
		require.Equal(t, map[bool]string{true: "", false: fmt.Sprint(ways[m[1]])}[ways[m[1]] == 1], m[2], v.ID)
		for _, also := range v.Also {
			require.NotEqual(t, m[1], also.ID, v.ID)
		}
	}
	require.NotEmpty(t, ways)
	raw, err := json.Marshal(Violations()[0])
	require.NoError(t, err)
	require.Regexp(t, `^\{"id":"[^"]+","changes":"[^"]+","also":\[`, string(raw))
}

// everySeam passes through every seam without a change.
func everySeam() seams {
	return seams{
		http:     func(*call) bool { return false },
		auth:     func(_ *call, allowed bool) bool { return allowed },
		parsed:   func(*call) {},
		plan:     func(_ *call, v any) any { return v },
		accept:   func(_ *call, _ *plan, err *rpc.Error) *rpc.Error { return err },
		batch:    func(*call, *batch) {},
		apply:    func(_ *call, r *record, next next) result { return next(r) },
		value:    func(*call, *record, *cell) {},
		cells:    func(*call, *record) {},
		rows:     func(_ *call, _ *record, rows store.Rows) store.Rows { return rows },
		results:  func(_ *call, rs []result) []result { return rs },
		answered: func(*call) {},
		envelope: func(*call, *envelope) {},
		reply:    func(_ *call, b []byte) []byte { return b },
		write:    func(*call, *httpReply) {},
		restart:  func(*Sim) {},
	}
}

// TestSeamsLeaveNoByteDifferent plays the same calls through a simulator
// without seams and one that passes through all of them.
func TestSeamsLeaveNoByteDifferent(t *testing.T) {
	plain, seamed := newSim(t, Config{Token: "t"}), newSim(t, Config{Token: "t"})
	seamed.chain().add(everySeam())
	bodies := []string{
		``, `{}`, `[]`, `{"jsonrpc":"2.0","id":"a","method":"x<>&` + "\u2028" + `"}`, `{"jsonrpc":"2.0","id":5,"method":"list_objects"}`,
		`{"jsonrpc":"2.0","id":null,"method":"get_sync_speed"}`, `{"jsonrpc":"2.0","method":"test_connection","params":[]}`,
	}
	add := func(method, params string) {
		bodies = append(bodies, string(rpc.EncodeRequest(nil, method, []byte(params), "ID \"é\" 😀")))
	}
	for _, m := range rpc.Methods() {
		add(m, `{}`)
		add(m, `{"object":{"object_api_name":"contact","label":"Contact"}}`)
	}
	for _, op := range []string{"insert", "update", "upsert", "delete", "mirror", "append"} {
		add("sync_batch", planOf(plain, "contact", op, "email", `{"email":"\u00e9","last_name":"x","age":1}`, `{"email":"b"}`, `{}`, `{"email":null}`))
		add("sync_batch", planOf(plain, "order", op, "order_id", `{"order_id":1,"order_number":"x","nope":1}`, `{"order_id":1,"order_number":"x"}`))
		add("sync_batch", planOf(plain, "event", op, "event_id", `{"event_id":"1","new_`+op+`":"<v>"}`))
	}
	for _, body := range bodies {
		for _, token := range []string{"Bearer t", "Bearer x"} {
			a, b := post(plain, body, "Authorization", token), post(seamed, body, "Authorization", token)
			require.Equal(t, a.Code, b.Code)
			require.Equal(t, a.Header(), b.Header())
			require.Equal(t, a.Body.String(), b.Body.String())
		}
	}
}

// serve runs a simulator behind a real server.
func serve(t *testing.T, config Config) (*Sim, string) {
	t.Helper()
	sim := newSim(t, config)
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	return sim, strings.TrimPrefix(server.URL, "http://")
}

const testCall = `{"jsonrpc":"2.0","method":"test_connection","params":{},"id":"a"}`

// TestWhatIsLateIsWrittenBeforeTheEnd: a violation that writes later loses nothing.
func TestWhatIsLateIsWrittenBeforeTheEnd(t *testing.T) {
	s := newSim(t, Config{Violate: []string{"DUR-001"}, Delays: Delays{Write: time.Hour}})
	write(t, s, "contact", "upsert", contacts(0, lateBatch)...)
	require.Empty(t, stored(t, s, "contact", "email", `"n7"`))
	s.end()
	s.deferred.Wait()
	require.Equal(t, `{"email":"n7","last_name":"x"}`, stored(t, s, "contact", "email", `"n7"`))
}
