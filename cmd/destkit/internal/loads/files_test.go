package loads

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// TestLoadReports: --report of a load names the same files as its other flags.
func TestLoadReports(t *testing.T) {
	l := files{reports: []string{"out.html", "r.json", "hdr=a.log", "intervals.csv"}}
	require.NoError(t, l.resolve())
	require.Equal(t, files{reports: l.reports, html: "out.html", json: "r.json", hdr: "a.log", csv: "intervals.csv"}, l)

	for want, l := range map[string]files{
		"formats are json (.json), html (.html, .htm), csv (.csv), hdr (.hlog)": {reports: []string{"out.pdf"}},
		"did you mean html?":                   {reports: []string{"htlm=r"}},
		"there is a json file already: r.json": {reports: []string{"s.json"}, json: "r.json"},
		"there is a html file already: a.html": {reports: []string{"a.html", "html=b.html"}},
	} {
		err := l.resolve()
		require.ErrorContains(t, err, want)
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}
