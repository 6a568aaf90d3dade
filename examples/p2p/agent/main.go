// Command agent is an agent of plain HTTP, which knows nothing of the cluster: it shows a card, and greets. `agora sidecar --agent-url http://127.0.0.1:8000` makes it a member.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
)

const card = `{"name":"plain","description":"Greets whoever asks","version":"1.0.0","skills":[{"name":"greet","description":"Greets somebody by name","path":"/greet/{name}","method":"POST"}]}`

func main() {
	listen := flag.String("listen", "127.0.0.1:8000", "where to serve")
	flag.Parse()
	http.HandleFunc("GET /card", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, card)
	})
	http.HandleFunc("POST /greet/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"greeting": "Hello, " + r.PathValue("name") + "!"})
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
