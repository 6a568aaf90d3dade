package main

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// query is an expression in PromQL as far as it is looked at here: which metrics it names, with which labels.
type query struct {
	metrics map[string][]matcher
	grouped []string // labels that it groups by
}

type matcher struct{ label, op, value string }

var (
	token     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9.]*[a-z]*|[=!]~|[=!<>]=|\S`)
	groupings = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
)

// parseQuery reads an expression; what is wrong with its brackets fails the test.
func parseQuery(t *testing.T, expr string) query {
	t.Helper()
	q := query{metrics: map[string][]matcher{}}
	words := token.FindAllString(expr, -1)
	at := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	depth, last := 0, ""
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case w == "{":
			for i++; at(i) != "}" && i < len(words); i++ {
				if at(i) == "," {
					continue
				}
				q.metrics[last] = append(q.metrics[last], matcher{at(i), at(i + 1), strings.Trim(at(i+2), `"`)})
				i += 2
			}
			if last == "" || at(i) != "}" {
				t.Fatalf("%s: labels of nothing, or not closed", expr)
			}
		case slices.Contains(groupings, w):
			if at(i+1) != "(" {
				t.Fatalf("%s: %s without labels", expr, w)
			}
			for i += 2; at(i) != ")" && i < len(words); i++ {
				if at(i) != "," {
					q.grouped = append(q.grouped, at(i))
				}
			}
		case !isName(w) || slices.Contains(operators, w) || at(i+1) == "(" || slices.Contains(groupings, at(i+1)):
		default:
			last = w
			if q.metrics[w] == nil {
				q.metrics[w] = []matcher{}
			}
		}
		if depth < 0 {
			t.Fatalf("%s: brackets don't match", expr)
		}
	}
	if depth != 0 || len(q.metrics) == 0 {
		t.Fatalf("%s: brackets don't match, or it names no metric", expr)
	}
	return q
}

func isName(w string) bool {
	return w[0] == '_' || w[0] >= 'a' && w[0] <= 'z' || w[0] >= 'A' && w[0] <= 'Z'
}

// given are labels that Prometheus, or its operator on Kubernetes, adds to everything that it collects.
var given = []string{"job", "instance", "namespace", "le"}

// prometheusOwn are series that Prometheus makes itself, with labels of theirs.
var prometheusOwn = map[string][]string{"up": nil, "ALERTS": {"alertname", "alertstate", "severity"}}

// checkQuery tells what an expression names that no edge exports.
func checkQuery(t *testing.T, where, expr string, metrics map[string]*metric) {
	t.Helper()
	q := parseQuery(t, expr)
	labels := slices.Clone(given)
	for name, matchers := range q.metrics {
		if own, is := prometheusOwn[name]; is {
			labels = append(labels, own...)
			continue
		}
		m := metrics[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && m == nil && metrics[base] != nil && metrics[base].typ == "histogram" {
				m = metrics[base]
			}
		}
		if m == nil {
			t.Errorf("%s: no edge exports %s: %s", where, name, expr)
			continue
		}
		labels = slices.AppendSeq(labels, maps.Keys(m.labels))
		if strings.Contains(expr, "rate("+name) && m.typ == "gauge" || strings.Contains(expr, "increase("+name) && m.typ == "gauge" {
			t.Errorf("%s: %s is a gauge, and has no rate: %s", where, name, expr)
		}
		for _, l := range matchers {
			if slices.Contains(given, l.label) {
				continue
			}
			if values := m.labels[l.label]; values == nil || l.op == "=" && !values[l.value] {
				t.Errorf("%s: %s has no label %s with value %q: %s", where, name, l.label, l.value, expr)
			}
		}
	}
	for _, l := range q.grouped {
		if !slices.Contains(labels, l) {
			t.Errorf("%s: nothing there has the label %s: %s", where, l, expr)
		}
	}
}

type alert struct {
	Alert, Expr, For string
	Labels           map[string]string
	Annotations      map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	b, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &rules); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range rules.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no alerts")
	}
	return all
}

func TestDashboardAndAlertsNameMetricsThatEdgesExport(t *testing.T) {
	t.Parallel()
	metrics, _ := scrape(t, launch(t, backends(t)...).ready().admin)
	for _, a := range alerts(t) {
		checkQuery(t, "alert "+a.Alert, a.Expr, metrics)
	}
	for _, p := range dashboard(t) {
		for _, target := range p.Targets {
			checkQuery(t, "panel "+p.Title, target.Expr, metrics)
		}
	}
}

// panel is one of the dashboard.
type panel struct {
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr string }
}

func (p panel) exprs() string {
	var all []string
	for _, target := range p.Targets {
		all = append(all, target.Expr)
	}
	return strings.Join(all, "\n")
}

// dashboard returns the dashboard's panels.
func dashboard(t *testing.T) []panel {
	t.Helper()
	var board struct{ Panels []panel }
	b, err := os.ReadFile("../../deploy/grafana/agora.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	if len(board.Panels) == 0 {
		t.Fatal("the dashboard shows nothing")
	}
	return board.Panels
}

func TestEveryPanelSaysWhatItShows(t *testing.T) {
	for n, p := range dashboard(t) {
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("panel %s shows %d series, and says %q of them", p.Title, len(p.Targets), p.Description)
		}
		for _, o := range dashboard(t)[:n] {
			if a, b := p.GridPos, o.GridPos; a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panel %s lies on %s", p.Title, o.Title)
			}
		}
	}
}

// Anyone who opens the dashboard in the night looks at its upper left first.
func TestTheDashboardsFirstRowSaysHowAllIs(t *testing.T) {
	var first []string
	for _, p := range dashboard(t) {
		if p.GridPos.Y == 0 {
			first = append(first, p.exprs())
		}
	}
	for n, want := range []string{"agora_ready{", "agora_draining{", "up{", "agora_sessions{", "ALERTS{"} {
		if n >= len(first) || !strings.Contains(first[n], want) {
			t.Errorf("the first row shows %q, want %s in place %d", first, want, n+1)
		}
	}
}

func TestTheDashboardShowsAllThatIsCountedByTenant(t *testing.T) {
	t.Parallel()
	metrics, _ := scrape(t, launch(t, backends(t)...).ready().admin)
	var shown strings.Builder
	for _, p := range dashboard(t) {
		shown.WriteString(p.exprs())
	}
	for name := range metrics {
		if strings.HasPrefix(name, "agora_tenant_") && !strings.Contains(shown.String(), name+"{") {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// operationsURL is where docs/operations.md can be read; GitHub makes an anchor of each heading.
const operationsURL = "https://github.com/agora-relay/agora/blob/main/docs/operations.md"

func TestEachAlertHasItsMeaningAndWhatToDo(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(b), "\n## Alerts\n")
	if !ok {
		t.Fatal("docs/operations.md has no section Alerts")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	described := map[string]string{}
	for _, part := range strings.Split(section, "\n### ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		described[name] = text
	}
	for _, a := range alerts(t) {
		text := described[a.Alert]
		delete(described, a.Alert)
		severity := a.Labels["severity"]
		if !strings.Contains(text, "**Do:** ") || !strings.Contains(strings.ToLower(text), "*"+severity+".*") {
			t.Errorf("%s: docs/operations.md does not say what it means, how bad that is, and what to do", a.Alert)
		}
		if got, want := a.Annotations["runbook_url"], operationsURL+"#"+strings.ToLower(a.Alert); got != want || a.For == "" {
			t.Errorf("%s: runbook_url %q, want %q; for %q", a.Alert, got, want, a.For)
		}
		for _, want := range []string{".instance }}", "{{ $value "} {
			if !strings.Contains(a.Annotations["summary"], want) {
				t.Errorf("%s: %q is not in the text: %s", a.Alert, want, a.Annotations["summary"])
			}
		}
	}
	for name := range described {
		t.Errorf("docs/operations.md describes the alert %s, which there is not", name)
	}
}

func TestAQueryThatNamesWhatIsNotThereIsFound(t *testing.T) {
	q := parseQuery(t, `histogram_quantile(0.9, sum by (le, leg) (rate(a_bucket{leg="x",job=~"$job"}[5m]))) > b offset 5m`)
	if got := slices.Sorted(maps.Keys(q.metrics)); !slices.Equal(got, []string{"a_bucket", "b"}) {
		t.Errorf("metrics %v", got)
	}
	if !slices.Equal(q.grouped, []string{"le", "leg"}) || q.metrics["a_bucket"][0] != (matcher{"leg", "=", "x"}) {
		t.Errorf("query %+v", q)
	}
}
