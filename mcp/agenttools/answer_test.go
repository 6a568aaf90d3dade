package agenttools

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// bytesOf is an answer of bytes.
func bytesOf(media, data string, item uint64) client.Answer {
	return client.Answer{Body: json.RawMessage(`"` + base64.StdEncoding.EncodeToString([]byte(data)) + `"`), Media: media, Item: item}
}

func textOf(json string) client.Answer { return client.Answer{Body: []byte(json)} }

func TestMediaBecomeContent(t *testing.T) {
	t.Parallel()
	w := new(answer)
	for _, a := range []client.Answer{
		textOf(`"see "`), textOf(`"this:"`), bytesOf("image/png", "PNG", 0), bytesOf("audio/wav", "WAV", 0), textOf(`{"a":1}`), textOf(`[2]`),
		bytesOf("image/*", "GIF8", 1), bytesOf("image/*", "9a", 1), bytesOf("image/*", "GIF87a", 2), bytesOf("application/pdf", "PDF", 0), bytesOf("text/csv; charset=utf-8", "a,b", 0),
		{Body: json.RawMessage(`"not base64"`), Media: "image/png"}, bytesOf("", "", 0),
	} {
		w.add(a)
	}
	w.end(bytesOf("nonsense/", "x", 0))
	want := `see this: | <image/png PNG> | <audio/wav WAV> | {"a":1}` + "\n[2] | " +
		`<image/gif GIF89a> | <image/gif GIF87a> | <agora:answer/5 application/pdf PDF> | a,b | <agora:answer/6 application/octet-stream x> | ` +
		`1 files of the answer are left out, as they are too large, too many or damaged.`
	if got := shown(w.result("")); got != want {
		t.Errorf("the result is\n%s, want\n%s", got, want)
	}
}

func TestMediaAreBounded(t *testing.T) {
	t.Parallel()
	w := new(answer)
	w.add(bytesOf("image/png", strings.Repeat("x", maxMedia+1), 0))
	for range 3 { // parts of one image that is too large as a whole
		w.add(bytesOf("image/png", strings.Repeat("x", maxMedia/2), 1))
	}
	for range maxBlocks + 1 {
		w.add(bytesOf("image/png", "x", 0))
	}
	w.end(client.Answer{})
	r := w.result("")
	if len(r.Content) != maxBlocks+1 || !strings.HasSuffix(shown(r), "3 files of the answer are left out, as they are too large, too many or damaged.") {
		t.Errorf("%d contents, the last of them %s", len(r.Content), shown(r)[len(shown(r))-80:])
	}
}

func TestAnAnswerWithoutContentSaysSo(t *testing.T) {
	t.Parallel()
	w := new(answer)
	w.end(client.Answer{})
	if got := shown(w.result("")); got != "The tool is done; it returned nothing." {
		t.Errorf("the result is %s", got)
	}
	if got := shown(new(answer).result("It failed.")); got != "error | It failed." {
		t.Errorf("the result is %s", got)
	}
}

func TestEveryErrorIsASentenceThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	c := New(nil, Config{CallTimeout: time.Minute})
	x := tool{agent: "bob", name: "add"}
	seen := map[string]agora.Code{}
	for _, code := range agora.Codes() {
		got := c.problem(x, agora.Errorf(code, "no reason."))
		if !strings.Contains(got, `"bob"`) || !strings.HasSuffix(got, ".") || strings.Contains(got, "..") {
			t.Errorf("%s is told as %s", code, got)
		}
		seen[got] = code
	}
	if len(seen) < 9 {
		t.Errorf("%d sentences for all codes", len(seen))
	}
	got := c.problem(x, &client.AnswerError{Err: agora.Errorf(agora.NotFound, "there is no such file"), Path: "/path"})
	if want := `The tool "add" of the agent "bob" answered with the error NOT_FOUND at /path: there is no such file. Correct the arguments if they are the cause; else do without it, or tell the user.`; got != want {
		t.Errorf("an answer's error is told as %s", got)
	}
	for _, err := range []error{client.ErrUnknown, client.ErrClosed, client.ErrCancelled, errors.New("x")} {
		if got := c.problem(x, err); !strings.Contains(got, `"add" of the agent "bob"`) {
			t.Errorf("%v is told as %s", err, got)
		}
	}
}
