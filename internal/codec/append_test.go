package codec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAppendRecordResult(t *testing.T) {
	got := AppendRecordResult([]byte("x"), []byte(`"Ashley's"`), true, "")
	got = AppendRecordResult(got, []byte("9007199254740993"), false, "bad <zip>\n")
	got = AppendRecordResult(got, nil, false, "")
	require.Equal(t, `x{"identifier":"Ashley's","success":true}`+
		`{"identifier":9007199254740993,"success":false,"error_message":"bad <zip>\n"}`+
		`{"identifier":null,"success":false}`, string(got))
}
