package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// TestEveryTerminalOfThePagesShowsWhatItSays runs the console blocks of README.md and of docs, each on a terminal of
// its own, in order: a shell runs what begins with "$ ", what is marked so is typed, and the terminal must show the
// rest, where "…" stands for anything, and ids and times for others of their kind. What a section starts ends with it.
// The program is the one that the README has people install; its ports are others, and `agora dev` stands for
// containers.
func TestEveryTerminalOfThePagesShowsWhatItSays(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	r := newReader(t)
	for _, page := range played(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			for section := range strings.SplitSeq(fileOf(t, page), "\n## ") {
				r.read(t, section)
			}
		})
	}
}

// played returns the pages that have console blocks: README.md, by which the program is installed, and behind it those
// of docs.
func played(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs = slices.DeleteFunc(docs, func(page string) bool { return len(consoleBlocks(fileOf(t, page))) == 0 })
	if len(docs) == 0 {
		t.Fatal("no page of docs has a console block")
	}
	return append([]string{"../../README.md"}, docs...)
}

// read follows the blocks of a section.
func (r *reader) read(t *testing.T, section string) {
	title, _, _ := strings.Cut(section, "\n")
	blocks := consoleBlocks(section)
	if len(blocks) == 0 {
		return
	}
	t.Run(title, func(t *testing.T) {
		var open []*shell
		for _, block := range blocks {
			open = append(open, r.follow(t, steps(block))...)
		}
		for _, x := range slices.Backward(open) {
			x.end(t)
		}
	})
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

func consoleBlocks(section string) (all []string) {
	for _, m := range consoleBlock.FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}
	return all
}

// step is a command of a block, and what the terminal shows until the next one.
type step struct {
	command string
	shows   []string // the text before each line that is typed, and that behind the last
	typed   []string
}

const (
	typedMark = "# you type this"
	compose   = "docker compose up --build --wait"
)

func steps(block string) (all []step) {
	for line := range strings.Lines(block) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{command: strings.TrimSpace(command), shows: []string{""}})
			if all[0].command == compose { // a cluster as good, with the same token at the same port
				all = []step{{command: "agora dev --auth file:deploy/compose/tokens", shows: []string{"…\nready\n"}}}
			}
			continue
		}
		s := &all[len(all)-1]
		text, typed := strings.CutSuffix(strings.TrimSpace(line), typedMark)
		if !typed {
			s.shows[len(s.typed)] += line
			continue
		}
		text = strings.TrimSpace(text)
		s.typed = append(s.typed, text)
		s.shows = append(s.shows, text+"\n") // the terminal shows it, too
	}
	return all
}

// reader is somebody who follows the README and the pages behind it.
type reader struct {
	dir     string
	env     []string
	ours    *strings.Replacer // of the pages' words, to those that hold here
	exports string            // of the block that is followed
	ids     map[string]string // of the pages, by those that were shown in their place
}

func newReader(t *testing.T) *reader {
	t.Helper()
	bin, first := t.TempDir(), servers.Ports(t, 13)
	var words []string
	for k := range 3 {
		words = append(words, fmt.Sprint(":", 8080+k), fmt.Sprint(":", first+k), fmt.Sprint(":", 9100+k), fmt.Sprint(":", first+3+k), fmt.Sprint(":", 50000+k), fmt.Sprint(":", first+6+k))
	}
	words = append(words, ":8000", fmt.Sprint(":", first+12))
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{dir: root, ours: strings.NewReplacer(words...), ids: map[string]string{}}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "AGORA_") {
			r.env = append(r.env, e)
		}
	}
	at := func(port int) string { return fmt.Sprint("127.0.0.1:", port) }
	r.env = append(r.env, "PATH="+bin+":"+os.Getenv("PATH"), "GOBIN="+bin, "TERM=dumb",
		"AGORA_ADDR="+at(first), "AGORA_ADMIN_ADDR="+at(first+3), "AGORA_GRPC_ADDR="+at(first+6), "AGORA_P2P_ADDR="+at(first+9), "AGORA_URL=ws://"+at(first), "AGORA_ADMIN=http://"+at(first+3))
	return r
}

// follow runs the steps of a block, and returns the last one where that continues.
func (r *reader) follow(t *testing.T, steps []step) []*shell {
	t.Helper()
	r.exports = ""
	for k, s := range steps {
		if strings.HasPrefix(s.command, "export ") {
			r.exports += r.ours.Replace(s.command) + "\n"
			continue
		}
		x := r.run(t, s)
		if k == len(steps)-1 && x.begun(t) {
			return []*shell{x}
		}
		for x.wait(t); !x.matches(len(s.typed), true) && strings.HasPrefix(s.command, "agora why "); x.wait(t) {
			x = r.run(t, s) // what becomes of a message shows soon, not at once
		}
		x.judge(t)
		r.learn(s, x)
	}
	return nil
}

// varying are what each run has others of: ids of messages, requests and calls, approvals, sessions, connections,
// times, ages, positions; and what is left out.
var varying = regexp.MustCompile(`…|\b[A-Z2-7]{26}\b|(?m:^\d+s +)|\b[mr]-[A-Z2-7]{20,}|\bc[A-Z2-7]{26}\b|\b[A-Z2-7]{16}\b|\bws-\d+|\b\d{4}-\d\d-\d\dT[0-9:.]+Z|\b\d\d:\d\d:\d\d\b|\b\d{9,}\b`)

// pattern returns the regular expression of what a page shows.
func (r *reader) pattern(text string) string {
	text = r.ours.Replace(text)
	var b strings.Builder
	last := 0
	for _, at := range varying.FindAllStringIndex(text, -1) {
		b.WriteString(regexp.QuoteMeta(text[last:at[0]]))
		switch what := text[at[0]:at[1]]; {
		case what == "…":
			b.WriteString(`(?s:.*?)`)
		case strings.HasSuffix(what, " "):
			b.WriteString(`\d+s +`)
		case what[1] == '-':
			b.WriteString(`(` + what[:2] + `[A-Z2-7]{20,})`)
		case strings.HasPrefix(what, "ws-"):
			b.WriteString(`ws-\d+`)
		case len(what) == 26:
			b.WriteString(`([A-Z2-7]{26})`)
		case what[0] == 'c':
			b.WriteString(`c[A-Z2-7]{26}`)
		default:
			b.WriteString(`[A-Z0-9:.-]+`)
		}
		last = at[1]
	}
	return b.String() + regexp.QuoteMeta(text[last:])
}

// learn notes the ids that were shown for those of the page, which later commands name.
func (r *reader) learn(s step, x *shell) {
	named := regexp.MustCompile(`\b[mr]-[A-Z2-7]{20,}|\b[A-Z2-7]{26}\b`).FindAllString(strings.Join(s.shows, ""), -1)
	if m := x.pattern(len(s.typed), true).FindStringSubmatch(x.shown()); m != nil {
		for k, id := range named {
			r.ids[id] = m[k+1]
		}
	}
}

// shell runs a step on a terminal.
type shell struct {
	*pty
	r    *reader
	step step
	done chan error
	work sync.WaitGroup

	interrupted bool
}

func (r *reader) run(t *testing.T, s step) *shell {
	t.Helper()
	script := r.exports + r.ours.Replace(s.command)
	if strings.HasPrefix(s.command, "agora sidecar ") { // it is no edge, whose settings these are
		script = "unset AGORA_ADMIN_ADDR AGORA_P2P_ADDR\n" + script
	}
	for ours, theirs := range r.ids {
		script = strings.ReplaceAll(script, ours, theirs)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	x := &shell{pty: openPTY(t), r: r, step: s, done: make(chan error, 1)}
	x.start(t, cmd)
	x.work.Go(func() { x.done <- cmd.Wait() })
	x.work.Go(x.typeLines)
	t.Cleanup(func() { cmd.Process.Kill(); x.work.Wait() })
	return x
}

// typeLines types each line once all is shown that stands before it.
func (x *shell) typeLines() {
	for k, line := range x.step.typed {
		if !await.Within(await.Long, func() bool { return x.matches(k, false) || len(x.done) > 0 }) {
			return // the test sees what is missing
		}
		x.write(line + "\n")
	}
}

// pattern is that of what is shown before the k-th line is typed: of the beginning, or of all.
func (x *shell) pattern(k int, all bool) *regexp.Regexp {
	p := `^` + x.r.pattern(strings.Join(x.step.shows[:k+1], ""))
	if all {
		p += `$`
	}
	return regexp.MustCompile(p)
}

func (x *shell) matches(k int, all bool) bool { return x.pattern(k, all).MatchString(x.shown()) }

// goesOn is what a command of a page begins with that runs until it is interrupted. Others end by themselves, just
// after they have shown their last line, when an interrupt could still hit them.
var goesOn = regexp.MustCompile(`^(agora (dev|listen|join|sidecar)|go run \./examples/(iat/\w+|aip/(agent|toolbox)|p2p/agent))`)

// begun waits until the step has ended, or shows the first line that it is to show, and reports whether it continues.
func (x *shell) begun(t *testing.T) bool {
	t.Helper()
	if !goesOn.MatchString(x.step.command) || strings.Contains(x.step.command, " --count ") {
		return false
	}
	first := strings.TrimLeft(x.step.shows[0], "…\n")
	first, _, _ = strings.Cut(first, "\n")
	shows := regexp.MustCompile(`(?m)^` + x.r.pattern(first))
	if !await.Within(await.Long, func() bool { return len(x.done) > 0 || first != "" && shows.MatchString(x.shown()) }) {
		t.Fatalf("$ %s\nshows\n%s", x.step.command, x.shown())
	}
	return len(x.done) == 0
}

// wait waits until the step has ended.
func (x *shell) wait(t *testing.T) {
	t.Helper()
	if !await.Within(await.Long, func() bool { return len(x.done) > 0 }) {
		t.Fatalf("$ %s\ndoes not end, and shows\n%s", x.step.command, x.shown())
	}
	x.work.Wait()
	if err := <-x.done; err != nil && !(x.interrupted && strings.HasPrefix(x.step.command, "go run ")) { // which is no success to go run
		t.Errorf("$ %s\nends with %v", x.step.command, err)
	}
	x.done <- nil
	x.drained(t)
}

// end waits until a step that continues has shown everything, and ends it as people do.
func (x *shell) end(t *testing.T) {
	t.Helper()
	await.Within(await.Long, func() bool { return x.matches(len(x.step.typed), false) })
	if len(x.done) == 0 {
		x.interrupted = true
		x.write("\x03")
	}
	x.wait(t)
	x.judge(t)
}

func (x *shell) judge(t *testing.T) {
	t.Helper()
	if !x.matches(len(x.step.typed), true) {
		t.Errorf("$ %s\nshows\n%s\nwant\n%s", x.step.command, x.shown(), strings.Join(x.step.shows, ""))
	}
}
