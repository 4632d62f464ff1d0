package executor

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/destkit/destkit/internal/testkit"
)

// children are what a process can do that these tests start: its work stands in
// the variable of the name, as JSON.
var children = map[string]interface{ do() error }{
	crashEnv: &crashWork{}, millionEnv: &millionWork{},
}

func TestMain(m *testing.M) {
	for name, work := range children {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		err := json.Unmarshal([]byte(text), work)
		if err == nil {
			err = work.do()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testkit.RunWithPostgres(m))
}
