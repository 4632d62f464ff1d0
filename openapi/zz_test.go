package openapi
import ("testing";"strings";"time")
func TestHostile(t *testing.T){
 for n,b:=range map[string]string{
  "mappings 2M": syncWith(`"mappings":[`, `"mappings":[`+strings.Repeat(`{"from":{"type":"column","data":5},"to":3,"x":1},`,5000)),
  "unknown 500k": `{`+strings.Repeat(`"k":1,`,500000)+`"z":1}`,
  "strings": `{"name":"`+strings.Repeat(`\\u0041`,1000000)+`"}`,
  "deep": strings.Repeat(`{"a":`,1000000),
  "mixed": syncWith(`"mappings":[`, `"mappings":[`+strings.Repeat(`[[[[{}]]]],`,500000)),
 }{ s:=time.Now(); p:=problemsOf(t,"createSync","","",b); t.Log(n,len(b)>>10,"KiB",len(p),time.Since(s)) }
}
