// Command agent is an agent of plain HTTP, which knows nothing of the cluster: it shows a card, and greets. `agora
// sidecar --agent-url http://127.0.0.1:8000` makes it a member.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
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
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("* plain serves at http://%s\n", l.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, func() { l.Close() })
	if err := http.Serve(l, nil); !errors.Is(err, net.ErrClosed) {
		log.Fatal(err)
	}
}
