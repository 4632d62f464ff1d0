package command

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatGoesOnHasALineEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		done := GoesOn(&out, false, "filling the table")
		time.Sleep(25 * time.Second)
		done()
		done()
		time.Sleep(time.Minute)
		require.Equal(t, "filling the table for 10s\nfilling the table for 20s\n", out.String())

		out.Reset()
		done = GoesOn(&out, true, "filling the table")
		time.Sleep(time.Minute)
		done()
		require.Empty(t, out.String())
	})
}
