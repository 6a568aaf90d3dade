package check

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const minutes = 65 // longer than any alert waits

// firing returns the text of each alert that fires in the end, by its name, when the first edge, or all of them, differ
// from what is well.
func firing(t *testing.T, m monitored, differ map[string]string, all bool) map[string]string {
	t.Helper()
	var series strings.Builder
	series.WriteString("load 1m\n")
	for n, edge := range m.edges {
		values := maps.Clone(well)
		if n == 0 || all {
			maps.Copy(values, differ)
		}
		for name, v := range values {
			if v == "" {
				continue
			}
			if !strings.Contains(v, "+") {
				v += "+0"
			}
			fmt.Fprintf(&series, " %s %sx%d\n", with(name, edge), v, minutes)
		}
	}
	return evaluate(t, m.rules, stored(t, series.String()))
}

// evaluate evaluates rules every minute, and returns the text of each alert that fires in the end, by its name.
func evaluate(t *testing.T, text string, l *promqltest.LazyLoader) map[string]string {
	t.Helper()
	alerts := load(t, text, l)
	for minute := range minutes {
		at := time.Unix(0, 0).UTC().Add(time.Duration(minute) * time.Minute)
		l.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range alerts {
				if _, err := r.Eval(l.Context(), 0, at, rules.EngineQueryFunc(l.QueryEngine(), l.Storage()), &url.URL{}, 0); err != nil {
					t.Fatalf("%s: %v", r.Name(), err)
				}
			}
		})
	}
	fired := map[string]string{}
	for _, r := range alerts {
		for _, a := range r.ActiveAlerts() {
			if a.State == rules.StateFiring {
				fired[r.Name()] += a.Annotations.Get("summary")
			}
		}
	}
	return fired
}

// with adds an edge's labels to those of a series.
func with(series string, edge labels.Labels) string {
	name, own, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	all := strings.Trim(edge.String(), "{}")
	if own != "" {
		all += "," + own
	}
	return strings.ReplaceAll(name+"{"+all+"}", " ", "")
}

// stored returns what stores the series, bit by bit.
func stored(t *testing.T, series string) *promqltest.LazyLoader {
	t.Helper()
	l, err := promqltest.NewLazyLoader(series, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// load reads rules as Prometheus does.
func load(t *testing.T, text string, l *promqltest.LazyLoader) (all []*rules.AlertingRule) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := rules.NewManager(&rules.ManagerOptions{Context: context.Background(), Logger: promslog.NewNopLogger(), Appendable: l.Storage(),
		Parser: parser.NewParser(parser.Options{}), QueryFunc: rules.EngineQueryFunc(l.QueryEngine(), l.Storage())})
	groups, errs := m.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups {
		all = append(all, g.AlertingRules()...)
	}
	return all
}
