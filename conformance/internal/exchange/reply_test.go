package exchange_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestWhatIsRefusedUnreadNeedsNoID: a server that refuses a call before it reads the body does not
// know its id, and sends null or none. Everyone else gives it back.
func TestWhatIsRefusedUnreadNeedsNoID(t *testing.T) {
	ids := map[string]string{"null": `"id":null,`, "none": "", "another": `"id":"8",`, "its": `"id":"7",`}
	for status, unread := range map[int]bool{401: true, 403: true, 413: true, 429: true, 502: true, 503: true, 504: true, 200: false, 400: false, 404: false, 500: false} {
		for name, id := range ids {
			r := &exchange.Reply{ID: "7", Reply: &wire.Reply{Status: status, Kind: wire.KindNone, Content: wire.Content{Body: fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"error":{"code":-32000,"message":"no"}}`, id)}}}
			r.Parse(nil)
			require.NoError(t, r.DocErr)
			require.Equal(t, name == "another" || name != "its" && !unread, r.OtherID(), "status %d, id %s", status, name)
		}
	}
}
