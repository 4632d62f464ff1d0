package service

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// page is an answer with this body, of a list with known records.
func page(t *testing.T, body string, l listing, number, size int) reading {
	t.Helper()
	n, err := wire.Parse([]byte(body))
	require.NoError(t, err)
	return reading{answer: &answer{json: n, Reply: &wire.Reply{Status: 200}}, list: l, page: number, size: size}
}

// TestPaginationIsComputed: what each page of five records has to say, two at a
// time, and beyond the end.
func TestPaginationIsComputed(t *testing.T) {
	five := listing{path: "/syncs", things: 5, exact: true}
	for _, c := range []struct {
		page             int
		prev, next, last string
	}{
		{1, "null", "2", "3"}, {2, "1", "3", "3"}, {3, "2", "null", "3"}, {4, "", "null", "3"},
	} {
		r := page(t, `{"pagination":{}}`, five, c.page, 2)
		require.Equal(t, c.prev, r.expected("prev_page"), "page %d", c.page)
		require.Equal(t, c.next, r.expected("next_page"), "page %d", c.page)
		require.Equal(t, c.last, r.expected("last_page"), "page %d", c.page)
		require.Equal(t, "5", r.expected("total_records"))
		require.Equal(t, "2", r.expected("per_page"))
	}
	// Nothing is asked of the last page of an empty list, whose number is not shown.
	empty := page(t, `{"pagination":{"total_records":0}}`, listing{}, 1, 25)
	require.Empty(t, empty.expected("last_page"))
	require.Equal(t, "null", empty.expected("next_page"))
}

func TestRecordsAreIdentified(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":7,"full_name":"thing"}`:        "7",
		`{"id":"7"}`:                          "7",
		`{"full_name":"thing","label":"T"}`:   "thing",
		`{"service_name":"snowflake"}`:        "snowflake",
		`{"label":"has nothing of the kind"}`: "",
	} {
		n, err := wire.Parse([]byte(body))
		require.NoError(t, err)
		require.Equal(t, want, identityOf(n), body)
	}
}

func TestTimesWithTheirZone(t *testing.T) {
	for text, utc := range map[string]bool{
		"2026-01-31T09:30:00Z": true, "2026-01-31T09:30:00.123Z": true, "2026-01-31T09:30:00+00:00": true,
		"2026-01-31T09:30:00+02:00": false, "2026-01-31T09:30:00": false, "2026-01-31 09:30:00Z": false, "": false,
	} {
		require.Equal(t, utc, isUTC(text), text)
	}
}

func TestMembersHaveTheirPlaces(t *testing.T) {
	n, err := wire.Parse([]byte(`[{"id":1,"parts":[{"part_id":2}],"connection_details":{"accountId":"x"}}]`))
	require.NoError(t, err)
	var places []string
	for _, m := range allMembers(n, "") {
		places = append(places, m.place)
	}
	require.Equal(t, []string{"[].id", "[].parts", "[].parts[].part_id", "[].connection_details"}, places)
}

func TestInnards(t *testing.T) {
	for text, found := range map[string]bool{
		`{"message":"SELECT * FROM syncs WHERE id = 9"}`:        true,
		`{"message":"undefined method name for nil"}`:           true,
		`{"message":"panic at server.go:12"}`:                   true,
		`{"message":"there is no such resource"}`:               false,
		`{"message":"operation must be one of insert, update"}`: false,
	} {
		require.Equal(t, found, innards.MatchString(text), text)
	}
}

func TestSwapCase(t *testing.T) {
	require.Equal(t, "secret-token:aBc1", swapCase("secret-token:AbC1"))
	require.Equal(t, "aB", swapCase("Ab"))
}
