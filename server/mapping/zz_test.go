package mapping

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestZZ(t *testing.T) {
	var in struct {
		Record json.RawMessage
		T      []string
	}
	data, _ := os.ReadFile("/tmp/cross.json")
	_ = json.Unmarshal(data, &in)
	var out []struct {
		O, E, C *string
	}
	data, _ = os.ReadFile("/tmp/cross_out.json")
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	rec, _ := decodeValue(in.Record)
	record := rec.(map[string]any)
	bad := map[string]int{}
	for i, text := range in.T {
		got, err := "", error(nil)
		tpl, err := ParseTemplate(text)
		if err == nil {
			got, err = tpl.Render(record, Limits{})
		}
		want, have := "", "OK "+got
		if out[i].O != nil {
			want = "OK " + *out[i].O
		} else {
			want = "ERR " + *out[i].E
			if !strings.HasPrefix(*out[i].C, "Liquid") {
				want = "ERR ruby"
			}
		}
		if err != nil {
			have = "ERR " + err.Error()
			if strings.Contains(have, "[expr] unknown variable `") {
				have = strings.Replace(strings.TrimSuffix(have, "`"), "[expr] unknown variable `", "undefined variable ", 1)
			}
			if want == "ERR ruby" {
				continue
			}
		}
		if want == "ERR ruby" {
			continue
		}
		if want != have {
			key := "if"
			if j := strings.Index(text, "| "); j > 0 {
				key = strings.FieldsFunc(text[j+2:], func(r rune) bool { return r == ' ' || r == ':' })[0]
			}
			bad[key]++
			if bad[key] <= 6 {
				fmt.Printf("%s\n   R %q\n   O %q\n", text, want, have)
			}
		}
	}
	fmt.Println(bad)
}
