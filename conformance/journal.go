package conformance

import "github.com/destkit/destkit/conformance/internal/journal"

// ReadJournal returns the suite whose run wrote a journal, and the URL of that run as far
// as it holds no secret; placeholders such as $DESTKIT_URL stand for what does. The suite
// "" is SuiteDestination.
func ReadJournal(file string) (suite, target string, err error) {
	j, err := journal.Read(file)
	if err != nil {
		return "", "", err
	}
	return j.Header().Suite, j.Header().Target, nil
}
