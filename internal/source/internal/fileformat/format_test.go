package fileformat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestDistinctNames(t *testing.T) {
	require.NoError(t, distinctNames([]api.Column{{Name: "a"}, {Name: "A"}, {Name: ""}}))
	require.EqualError(t, distinctNames([]api.Column{{Name: "a"}, {Name: "b"}, {Name: "a"}}), `columns 1 and 3 are both named "a"`)
	require.EqualError(t, distinctNames([]api.Column{{Name: "a"}, {Name: "\xff"}}), "the name of column 2 is not UTF-8")
}
