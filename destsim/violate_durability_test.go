package destsim

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/rpc"
)

func TestDurabilityViolationsShow(t *testing.T) {
	const (
		a, b = `"a"`, `"b"`
		a1   = `{"email":"a","last_name":"1"}`
		b1   = `{"email":"b","last_name":"1"}`
	)
	table := []effect{
		{id: "DUR-001", sees: map[string]string{"a hundred": "100 acknowledged, lost at once [0 1 2], later []"}},
		{id: "DUR-001.2", sees: map[string]string{"a hundred": "100 acknowledged, lost at once [49 99], later [49 99]"}},
		{id: "DUR-001.3", sees: map[string]string{"a hundred": "100 acknowledged, lost at once [99], later [99]"}},
		{id: "DUR-002", sees: map[string]string{"eight singles": "ok record not present"}},
		{id: "DUR-003", sees: map[string]string{"restart": " holds \n"}},
		{id: "DUR-005", sees: map[string]string{"long text": `"last_name":"` + strings.Repeat("é", 255) + `"}`}},
		{id: "DUP-001", sees: map[string]string{
			"upsert one again": `"error":{"code":-32000,"message":"unique violation"}` + "\n" + is(a, a1),
			"upsert two again": `"error":{"code":-32000,"message":"unique violation"}` + "\n" + is(a, a1) + is(b, b1),
		}},
		{id: "DUP-002", sees: map[string]string{
			"upsert one again": is(a, "2×"+a1), "upsert two again": is(a, "2×"+a1) + is(b, "2×"+b1),
		}},
		{id: "DUP-003", sees: map[string]string{"upsert one again": `"success":false,"error_message":"no row was changed"}]}` + "\n" + is(a, a1)}},
	}
	testEachShown(t, durabilityViolations(), table, "DUR-004", "DUR-004.2")
	testEffects(t, effectGlances(), table)
}

// TestCutRepliesShow: the client reads a little of the reply, goes away, and
// sends the batch again; or it reads the whole reply and does the same.
func TestCutRepliesShow(t *testing.T) {
	for _, c := range []struct {
		violation     string
		records       int
		cut           bool
		first, second string // of the first and the second half
	}{
		{"", 20, true, "1", "1"},
		{"", 20, false, "1", "1"},
		{"DUR-004", 20, true, "1", "1 half"},
		{"DUR-004", 20, false, "1", "1"},
		{"DUR-004", 19, true, "1", "1"},
		{"DUR-004.2", 20, true, "2", "2"},
		{"DUR-004.2", 20, false, "1", "1"},
		{"DUR-004.2", 19, true, "1", "1"},
	} {
		for _, operation := range []string{rpc.OperationUpsert, rpc.OperationInsert} {
			t.Run(fmt.Sprint(c.violation, c.records, c.cut, operation), func(t *testing.T) {
				config := Config{Delays: Delays{Meet: 50 * time.Millisecond}}
				if c.violation != "" {
					config.Violate = []string{c.violation}
				}
				sim, address := serve(t, config, seams{})
				params := planOf(sim, "contact", operation, "email", contacts(0, c.records)...)
				before := sendBatch(t, address, params, c.cut)
				again := sendBatch(t, address, params, false)
				require.Equal(t, c.records, strings.Count(again, `"identifier":`), again)
				if !c.cut {
					require.Equal(t, c.records, strings.Count(before, `"success":true`), "the reply is whole")
				}
				require.Equal(t, c.first, copies(t, sim, 0))
				require.Equal(t, c.second, copies(t, sim, c.records-1))
			})
		}
	}
}

// copies is how many copies of a contact are stored.
func copies(t *testing.T, s *Sim, n int) string {
	got := stored(t, s, "contact", "email", fmt.Sprintf(`"n%d"`, n))
	if got == "" {
		return "0"
	}
	if count, _, many := strings.Cut(got, "×"); many {
		return count
	}
	if strings.Count(got, ":") == 1 {
		return "1 half" // the identifier alone
	}
	return "1"
}

// sendBatch makes a call on a connection of its own and closes it, after 40
// bytes of the reply when it is cut.
func sendBatch(t *testing.T, address, params string, cut bool) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	body := requestBody(rpc.MethodSyncBatch, params, "id-1")
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	if cut {
		_, err = io.ReadFull(conn, make([]byte, 40))
		require.NoError(t, err)
		return ""
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(got)
}

// TestTakenBackRecordsStandAsBefore: what was there before the batch is there
// again, and what was not has its identifier alone.
func TestTakenBackRecordsStandAsBefore(t *testing.T) {
	sim, address := serve(t, Config{Violate: []string{"DUR-004"}}, seams{})
	write(t, sim, "contact", "upsert", person("n19", "before"))
	params := planOf(sim, "contact", "upsert", "email", contacts(0, 20)...)
	sendBatch(t, address, params, true)
	sendBatch(t, address, params, false)
	require.Equal(t, person("n19", "before"), stored(t, sim, "contact", "email", `"n19"`))
	require.Equal(t, `{"email":"n18"}`, stored(t, sim, "contact", "email", `"n18"`))
}
