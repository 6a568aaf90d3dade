package p2p

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	for name, input := range map[string]string{"small": `"{\"query\":\"what is new\"}"`, "1MiB": `"` + strings.Repeat("words and ", 1<<20/10) + `"`} {
		request := []byte(`{"method":"POST","path":"/greet/{name}","params":{"name":"Ada"},"input_data":` + input + `}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				_, err := Read(bytes.NewReader(request), 0)
				must(b, err)
			}
		})
	}
}

// BenchmarkCheck asks for the last of a hundred skills, as a template and filled.
func BenchmarkCheck(b *testing.B) {
	var skills []Skill
	for i := range 100 {
		skills = append(skills, Skill{Path: fmt.Sprintf("/things%d/{id}/parts/{part}", i)})
	}
	g, err := NewGuard(skills)
	must(b, err)
	for name, r := range map[string]*Request{
		"template": {Method: "POST", Path: "/things99/{id}/parts/{part}", Params: json.RawMessage(`{"id":"a b","part":7}`)},
		"filled":   {Method: "POST", Path: "/things99/a%20b/parts/7"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := g.Check(r)
				must(b, err)
			}
		})
	}
}
