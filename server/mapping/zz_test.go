package mapping

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestZZ(t *testing.T) {
	data, _ := os.ReadFile("/tmp/ruby.json")
	var cases []struct {
		Template      string
		Record        map[string]any
		Output, Error *string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, c := range cases {
		raw, _ := json.Marshal(c.Record)
		rec, _ := decodeValue(raw)
		record := rec.(map[string]any)
		record["fl"], record["one"], record["dec"] = 2.5, 1.0, 3.14159
		got, err := "", error(nil)
		tpl, err := ParseTemplate(c.Template)
		if err == nil {
			got, err = tpl.Render(record, Limits{})
		}
		want := ""
		if c.Output != nil {
			want = "OK " + *c.Output
		} else {
			want = "ERR " + *c.Error
		}
		have := "OK " + got
		if err != nil {
			have = "ERR " + err.Error()
		}
		if want != have {
			bad++
			fmt.Printf("TPL  %q\nRUBY %q\nOURS %q\n\n", c.Template, want, have)
		}
	}
	fmt.Println("different", bad, "of", len(cases))
}
