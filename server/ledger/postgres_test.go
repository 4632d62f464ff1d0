package ledger_test

import (
	"encoding/json"
	"testing"

	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/shelf/shelftest"
)

// The ledger knows no database: here its tests get one.
func init() {
	ledger.PostgresRoom = func(t testing.TB) (ledger.Shelf, string) {
		t.Helper()
		room := shelftest.Take(t)
		text, err := json.Marshal(room)
		if err != nil {
			t.Fatal(err)
		}
		on, err := room.Shelf()
		if err != nil {
			t.Fatal(err)
		}
		return on, string(text)
	}
	ledger.JoinRoom = func(child string) (ledger.Shelf, error) {
		var room shelftest.Room
		if err := json.Unmarshal([]byte(child), &room); err != nil {
			return nil, err
		}
		return room.Shelf()
	}
	ledger.SetFence = func(on ledger.Shelf, sync, fence int64) error {
		return on.(*shelftest.Shelf).SetFence(sync, fence)
	}
}
