package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// metric is what /metrics says of one name.
type metric struct {
	typ, help string
	labels    map[string]map[string]bool // values by name; le is the histogram's own
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// scrape reads the metrics of an edge.
func scrape(t *testing.T, admin string) (metrics map[string]*metric, values map[string]string) {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, values = map[string]*metric{}, map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, 4<<20))
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			metrics[name] = &metric{help: help, labels: map[string]map[string]bool{}}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, typ, _ := strings.Cut(rest, " ")
			metrics[name].typ = typ
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %s", line)
		}
		values[m[1]+"{"+m[2]+"}"] = m[3]
		of := metrics[m[1]]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if of == nil {
				of = metrics[strings.TrimSuffix(m[1], suffix)]
			}
		}
		for _, l := range labelPair.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "le" {
				continue
			}
			if of.labels[l[1]] == nil {
				of.labels[l[1]] = map[string]bool{}
			}
			of.labels[l[1]][l[2]] = true
		}
	}
	return metrics, values
}

const (
	metricsDoc   = "../../docs/metrics.md"
	metricsBegin = "<!-- begin: written by `AGORA_UPDATE_DOCS=1 go test ./cmd/agora -run TestMetricsAreDocumented` -->\n"
	metricsEnd   = "<!-- end -->\n"
)

// metricsTable is the documentation's table of the metrics that are Agora's own.
func metricsTable(metrics map[string]*metric) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if !strings.HasPrefix(name, "agora_") {
			continue
		}
		m := metrics[name]
		labels := slices.Sorted(maps.Keys(m.labels))
		for k, l := range labels {
			labels[k] = "`" + l + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, m.typ, strings.Join(labels, ", "), m.help)
	}
	return b.String()
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	metrics, _ := scrape(t, e.admin)
	want := metricsTable(metrics)
	doc, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), metricsBegin)
	have, after, ok2 := strings.Cut(rest, metricsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between its marks", metricsDoc)
	}
	if have == want {
		return
	}
	if os.Getenv("AGORA_UPDATE_DOCS") == "" {
		t.Fatalf("%s is not what an edge exports; write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", metricsDoc, want)
	}
	if err := os.WriteFile(metricsDoc, []byte(before+metricsBegin+want+metricsEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// internalWords are those of Agora's own code, which nobody knows who looks at a dashboard for the first time.
var internalWords = regexp.MustCompile(`(?i)\b(lanes?|inbox(es)?|parts?|records?|one-shots?|bodies|audit\w*|deposed|refills?|void|the log|the log's|doors?|crowd|seats?|told|let in)\b`)

func TestHelpTextsAreInWordsOfTheField(t *testing.T) {
	t.Parallel()
	metrics, _ := scrape(t, launch(t, backends(t)...).ready().admin)
	for name, m := range metrics {
		if word := internalWords.FindString(m.help); word != "" && strings.HasPrefix(name, "agora_") {
			t.Errorf("%s: the word %q is the code's own: %s", name, word, m.help)
		}
	}
}

// Within drain.delay an edge is not ready, and that is no fault.
func TestAnEdgeThatIsAskedToEndCountsAsDrainingAtOnce(t *testing.T) {
	t.Parallel()
	e := launchApart(t, append(backends(t), "--drain.delay", "1h")...).ready()
	if _, values := scrape(t, e.admin); values["agora_ready{}"] != "1" || values["agora_draining{}"] != "0" {
		t.Errorf("before: ready %s, draining %s", values["agora_ready{}"], values["agora_draining{}"])
	}
	e.stop()
	await.True(t, "the edge is not ready", func() bool {
		_, values := scrape(t, e.admin)
		return values["agora_ready{}"] == "0"
	})
	if _, values := scrape(t, e.admin); values["agora_draining{}"] != "1" {
		t.Errorf("within drain.delay: draining %s, want 1", values["agora_draining{}"])
	}
}

func TestNoLabelComesFromAnAgent(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	before, _ := scrape(t, e.admin)
	const word = "canary-of-an-agent"
	a := connect(t, e.public+"?agent_id="+word)
	a.hear("agent.registered")
	a.say(`{"type":"` + word + `","id":"` + word + `"}`)
	a.hear("error")
	a.say(`{"type":"space.join","id":"1","space":"` + word + `"}`)
	a.hear("space.joined")
	a.say(`{"type":"space.publish","id":"` + word + `","space":"` + word + `","data":{"text":"` + word + `"}}`)
	a.hear("space.event")
	a.say(`{"type":"send","to":"` + word + `","payload":{"a":1}}`)
	a.hear("message")
	after, _ := scrape(t, e.admin)
	for name, m := range after {
		for label, of := range m.labels {
			for value := range of {
				if strings.Contains(value, word) {
					t.Errorf("%s has the label %s=%q, which an agent made", name, label, value)
				}
				if !before[name].labels[label][value] {
					t.Errorf("%s got the label %s=%q while an agent talked", name, label, value)
				}
			}
		}
	}
}

func TestEveryLegIsTimed(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	alice, bob := connect(t, e.public+"?agent_id=alice"), connect(t, e.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	const sent = 40
	begin := time.Now()
	for range sent {
		alice.say(`{"type":"send","to":"bob","payload":{"a":1}}`)
	}
	for range sent {
		bob.hear("message")
	}
	await.True(t, "every leg was timed", func() bool {
		_, values := scrape(t, e.admin)
		for _, leg := range []string{"in", "stored", "delivered"} {
			if v := values[`agora_latency_seconds_count{leg="`+leg+`"}`]; v == "" || v == "0" {
				return false
			}
		}
		return true
	})
	_, values := scrape(t, e.admin)
	for _, leg := range []string{"in", "stored", "delivered"} {
		n, _ := strconv.ParseFloat(values[`agora_latency_seconds_count{leg="`+leg+`"}`], 64)
		sum, err := strconv.ParseFloat(values[`agora_latency_seconds_sum{leg="`+leg+`"}`], 64)
		if took := time.Since(begin).Seconds(); err != nil || sum < 0 || sum == 0 && leg != "delivered" || sum > n*took { // the log's clock, which delivered begins by, is known to a millisecond or so
			t.Errorf("%s: %v of them took %v s in all (%v), want each to take some time of the %v s that there were", leg, n, sum, err, took)
		}
	}
}

func TestWhatWaitedForItsAgentIsNoLatency(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	alice := connect(t, e.public+"?agent_id=alice")
	alice.hear("agent.registered")
	timed := func() (n int) {
		_, values := scrape(t, e.admin)
		n, _ = strconv.Atoi(values[`agora_latency_seconds_count{leg="delivered"}`])
		return n
	}
	bob := connect(t, e.public+"?agent_id=bob")
	bob.hear("agent.registered")
	leave := func() {
		bob.Close()
		await.True(t, "bob has left", func() bool {
			_, values := scrape(t, e.admin)
			return values["agora_sessions{}"] == "1"
		})
	}
	leave()
	before, now := 0, 0
	for pause := 50 * time.Millisecond; now != before+1; pause *= 4 { // a busy machine knows less well what time it is at the log
		if pause > await.Long {
			t.Fatalf("%d were timed of one message that waited and one that came live", now-before)
		}
		before = timed()
		alice.say(`{"type":"send","to":"bob","id":"1","payload":{"a":1}}`)
		alice.hear("receipt")
		<-time.After(pause) // it waits for bob
		bob = connect(t, e.public+"?agent_id=bob")
		bob.hear("agent.registered")
		bob.hear("message")
		<-time.After(pause) // bob waits for the next one
		alice.say(`{"type":"send","to":"bob","payload":{"a":2}}`)
		bob.hear("message")
		leave()
		now = timed()
	}
}
