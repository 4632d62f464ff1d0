package archive

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSnapshotsCountSensibly: ids of requests continue from the snapshot's,
// and must not overflow.
func TestSnapshotsCountSensibly(t *testing.T) {
	for _, requests := range []int64{-1, mostRequests + 1, math.MaxInt64} {
		a := &Archive{Parts: map[string]*io.SectionReader{}}
		meta := fmt.Sprintf(`{"format":%d,"requests":%d}`, Format, requests)
		a.Parts[PartMeta] = io.NewSectionReader(strings.NewReader(meta), 0, int64(len(meta)))
		a.Parts[PartStore] = a.Parts[PartMeta]
		require.ErrorIs(t, a.check(), ErrNone)
	}
}
