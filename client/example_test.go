package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/agora-relay/agora/client"
)

// An agent that sends a message, and ends.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{
		URLs:  []string{"ws://127.0.0.1:8080", "ws://127.0.0.1:8081"},
		Agent: "alice",
		Token: os.Getenv("AGORA_TOKEN"),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(ctx, "bob", map[string]string{"text": "Hello"}); err != nil {
		log.Fatal(err) // not stored, or not known to be
	}
}

// Print messages, and the text of streams as it comes.
func ExampleClient_Messages() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URLs: []string{"ws://127.0.0.1:8080"}, Agent: "bob"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for m, err := range c.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", m.From, m.Payload)
		if _, err := io.Copy(os.Stdout, m); err != nil {
			log.Print(err) // the stream has no normal end
		}
	}
}

// An agent that answers requests, token by token.
func ExampleClient_Handle() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URLs: []string{"ws://127.0.0.1:8080"}, Agent: "teller"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = c.Handle(ctx, func(ctx context.Context, m *client.Message) {
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
	log.Print(err)
}

// Ask another agent, and read its reply while it is written.
func ExampleClient_Request() {
	c, err := client.Dial(context.Background(), client.Config{URLs: []string{"ws://127.0.0.1:8080"}, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel() // also cancels what is left of the reply
	m, err := c.Request(ctx, "teller", map[string]string{"action": "story"})
	if err != nil {
		log.Fatal(err)
	}
	for text, err := range m.Chunks() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(text)
	}
}

// Stream text to another agent.
func ExampleClient_OpenStream() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URLs: []string{"ws://127.0.0.1:8080"}, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	s, err := c.OpenStream(ctx, "bob", map[string]string{"title": "The README"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(s, os.Stdin); err != nil {
		s.Cancel()
		log.Fatal(err)
	}
	if err := s.Close(); err != nil {
		log.Fatal(err)
	}
}

// Take part in a space.
func ExampleClient_Join() {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{URLs: []string{"ws://127.0.0.1:8080"}, Agent: "alice"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	general, err := c.Join(ctx, "general", client.JoinOptions{History: 10})
	if err != nil {
		log.Fatal(err)
	}
	if err := general.PublishText(ctx, "Hello everyone"); err != nil {
		log.Fatal(err)
	}
	for e, err := range general.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Roster != nil {
			fmt.Println(e.Roster.Joined, e.Roster.Left, "of", e.Roster.Members)
			continue
		}
		text, err := e.Text(ctx) // or e.Chunks, to read it as it comes
		fmt.Println(e.From, text, err)
	}
}

// file keeps positions in a file, so that the program goes on where it was when it is started again.
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
	_, err := client.Dial(context.Background(), client.Config{
		URLs: []string{"ws://127.0.0.1:8080"}, Agent: "alice", State: file("alice.positions"),
	})
	if err != nil {
		log.Print(err)
	}
}
