package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// An agent sends a message, and another one takes it.
func Example() {
	urls, stop := devCluster() // or those of your edges, like "ws://127.0.0.1:8080"
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice", Token: os.Getenv("AGORA_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()

	if err := alice.Send(ctx, "bob", map[string]string{"text": "Hello"}); err != nil {
		log.Fatal(err) // not stored, or not known to be
	}
	for m, err := range bob.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", m.From, m.Payload)
		break // one is enough here
	}
	// Output:
	// alice: {"text":"Hello"}
}

// An agent calls a tool of another one, of whatever dialect that is.
func ExampleClient_CallTool() {
	urls, stop := devCluster()
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()

	var work sync.WaitGroup
	defer work.Wait()
	defer bob.Close() // which ends what follows
	work.Go(func() {
		bob.Handle(ctx, func(ctx context.Context, m *client.Message) {
			var call struct {
				Tool      string         `json:"tool_name"`
				Arguments map[string]int `json:"arguments"`
			}
			if err := json.Unmarshal(m.Payload, &call); err != nil {
				log.Print(err)
				return
			}
			if err := m.Reply(ctx, map[string]int{"sum": call.Arguments["a"] + call.Arguments["b"]}); err != nil {
				log.Print(err)
			}
		})
	})

	call, err := alice.CallTool(ctx, "bob", "add", map[string]int{"a": 1, "b": 2})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := call.Result(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var sum struct{ Sum int }
	if err := json.Unmarshal(answer.Body, &sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Sum)
	// Output:
	// 3
}

// An agent has another one do something, which it knows nothing of but what is to be done.
func ExampleClient_Delegate() {
	urls, stop := devCluster()
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob", Card: client.Card{Skills: []agora.Skill{{Name: "translate", Description: "Into French"}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()

	var work sync.WaitGroup
	defer work.Wait()
	defer bob.Close() // which ends what follows
	work.Go(func() {
		bob.Handle(ctx, func(ctx context.Context, m *client.Message) {
			var asked struct {
				Method string `json:"method"`
				Path   string `json:"path"`
				Input  string `json:"input_data"`
			}
			if err := json.Unmarshal(m.Payload, &asked); err != nil {
				log.Print(err)
				return
			}
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Fprintf(s, "%s %s: ", asked.Method, asked.Path)
			fmt.Fprint(s, strings.ReplaceAll(asked.Input, "Hello", "Bonjour"))
			if err := s.Close(); err != nil {
				log.Print(err)
			}
		})
	})

	call, err := alice.Delegate(ctx, client.Query{Skill: "translate"}, nil, client.Handoff{Input: "Hello, world"})
	if err != nil {
		log.Fatal(err)
	}
	for piece, err := range call.Chunks() {
		if err != nil {
			log.Fatal(err)
		}
		text, err := piece.Bytes()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s", text)
	}
	fmt.Println()
	// Output:
	// POST /translate: Bonjour, world
}

// Print messages, and the text of streams as it comes.
func ExampleClient_Messages() {
	urls, stop := devCluster()
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()

	if err := alice.Send(ctx, "bob", "Do you know this one?"); err != nil {
		log.Fatal(err)
	}
	story, err := alice.OpenStream(ctx, "bob", map[string]string{"title": "A story"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(story, "Once upon ")
	fmt.Fprint(story, "a time")
	if err := story.Close(); err != nil {
		log.Fatal(err) // also what was wrong with the parts
	}

	for m, err := range bob.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", m.From, m.Payload)
		if _, err := io.Copy(os.Stdout, m); err != nil {
			log.Print(err) // the stream has no normal end
		}
		if m.Stream {
			break // no more is to come here
		}
	}
	// Output:
	// alice: "Do you know this one?"
	// alice: {"title":"A story"}
	// Once upon a time
}

// An agent that answers requests, token by token, until it is told to end.
func ExampleClient_Handle() {
	urls, stop := devCluster()
	defer stop()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	teller, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "teller"})
	if err != nil {
		log.Fatal(err)
	}
	defer teller.Close()
	var serving sync.WaitGroup
	serving.Go(func() {
		err := teller.Handle(ctx, func(ctx context.Context, m *client.Message) {
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				return
			}
			for _, token := range []string{"Once ", "upon ", "a time"} {
				if _, err := s.WriteString(token); err != nil {
					return // the asker has lost patience, or the session ended
				}
			}
			s.Close()
		})
		fmt.Println("over:", err)
	})

	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	m, err := alice.Request(ctx, "teller", map[string]string{"action": "story"})
	if err != nil {
		log.Fatal(err)
	}
	text, err := m.Text(ctx)
	fmt.Println(text, err)

	cancel()
	serving.Wait()
	// Output:
	// Once upon a time <nil>
	// over: context canceled
}

// Ask another agent, and read its reply while it is written.
func ExampleClient_Request() {
	urls, stop := devCluster()
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel() // also cancels what is left of the reply
	var serving sync.WaitGroup
	defer serving.Wait()
	teller, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "teller"})
	if err != nil {
		log.Fatal(err)
	}
	defer teller.Close() // ends Handle
	serving.Go(func() {
		teller.Handle(ctx, func(ctx context.Context, m *client.Message) {
			s, err := m.ReplyStream(ctx, nil)
			if err != nil {
				return
			}
			fmt.Fprint(s, "Once upon ")
			fmt.Fprint(s, "a time")
			s.Close()
		})
	})

	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	m, err := alice.Request(ctx, "teller", map[string]string{"action": "story"})
	if err != nil {
		log.Fatal(err)
	}
	for text, err := range m.Chunks() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q\n", text)
	}
	// Output:
	// "Once upon "
	// "a time"
}

// Stream text to another agent.
func ExampleClient_OpenStream() {
	urls, stop := devCluster()
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()

	s, err := alice.OpenStream(ctx, "bob", map[string]string{"title": "The README"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(s, strings.NewReader("Agora is a relay for agents.")); err != nil {
		s.Cancel()
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}

	for m, err := range bob.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		text, err := m.Text(ctx) // or m.Chunks, to read it as it comes
		fmt.Printf("%s: %s %s %v\n", m.From, m.Payload, text, err)
		break
	}
	// Output:
	// alice: {"title":"The README"} Agora is a relay for agents. <nil>
}

// Take part in a space, and see first what was said before.
func ExampleClient_Join() {
	urls, stop := devCluster()
	defer stop()

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()
	bobs, err := bob.Join(ctx, "general")
	if err != nil {
		log.Fatal(err)
	}
	if err := bobs.PublishText(ctx, "Is anybody here?"); err != nil {
		log.Fatal(err)
	}

	alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer alice.Close()
	general, err := alice.Join(ctx, "general", client.JoinOptions{History: 10})
	if err != nil {
		log.Fatal(err)
	}
	if err := general.PublishText(ctx, "Hello everyone"); err != nil {
		log.Fatal(err)
	}
	if err := bobs.Leave(ctx); err != nil {
		log.Fatal(err)
	}

	for e, err := range general.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Roster != nil {
			fmt.Printf("%s left, still here: %v\n", e.Roster.Left, e.Roster.Members)
			break
		}
		text, err := e.Text(ctx) // or e.Chunks, to read it as it comes
		fmt.Println(e.From, text, err)
	}
	// Output:
	// bob Is anybody here? <nil>
	// alice Hello everyone <nil>
	// bob left, still here: [alice]
}

// file keeps positions in a file, so that the program continues where it was when it is started again.
type file string

func (f file) Load(context.Context) (p client.Positions, err error) {
	b, err := os.ReadFile(string(f))
	if os.IsNotExist(err) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	return p, err
}

func (f file) Save(_ context.Context, p client.Positions) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(string(f), b, 0o600)
}

// Keep positions in a file.
func ExampleState() {
	urls, stop := devCluster()
	defer stop()
	dir, err := os.MkdirTemp("", "alice")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	bob, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer bob.Close()

	state := file(filepath.Join(dir, "positions"))
	for run := range 2 { // alice takes one message, and is started again
		alice, err := client.Dial(ctx, client.Config{URLs: urls, Agent: "alice", State: state})
		if err != nil {
			log.Fatal(err)
		}
		if run == 0 {
			for _, text := range []string{"first", "second"} {
				if err := bob.Send(ctx, "alice", text); err != nil {
					log.Fatal(err)
				}
			}
		}
		var last uint64
		for m, err := range alice.Messages(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("%s\n", m.Payload)
			last = m.Seq
			break
		}
		if err := alice.Close(); err != nil {
			log.Fatal(err)
		}
		saved, err := state.Load(ctx)
		fmt.Println("saved:", saved.LastSeq == last, err)
	}
	// Output:
	// "first"
	// saved: true <nil>
	// "second"
	// saved: true <nil>
}
