package check

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	operator "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // what the operator's configuration is made of
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/util/strutil"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// monitored is what Prometheus makes of a way to run edges: the rules that it evaluates, and the labels that every
// series of each of three edges bears.
type monitored struct {
	rules string
	edges []labels.Labels
}

// monitoredByChart returns what ServiceMonitor and PrometheusRule of the chart come to: the configuration is the one
// that Prometheus' own operator makes of the former.
func monitoredByChart(t *testing.T, values string) monitored {
	t.Helper()
	all := rendered(t, values+"serviceMonitor: {enabled: true}\nprometheusRule: {enabled: true}\n")
	text, err := yaml.Marshal(get[monitoring.PrometheusRule](t, all, "PrometheusRule/t-agora").Spec)
	if err != nil {
		t.Fatal(err)
	}
	m := get[monitoring.ServiceMonitor](t, all, "ServiceMonitor/t-agora")
	m.Namespace = "agora"
	p := &monitoring.Prometheus{ObjectMeta: meta.ObjectMeta{Name: "k8s", Namespace: "monitoring"}, Spec: monitoring.PrometheusSpec{
		EvaluationInterval:     "30s",
		CommonPrometheusFields: monitoring.CommonPrometheusFields{ScrapeInterval: "30s"},
	}}
	g, err := operator.NewConfigGenerator(slog.New(slog.DiscardHandler), p)
	if err != nil {
		t.Fatal(err)
	}
	made, err := g.GenerateServerConfiguration(p, map[string]*monitoring.ServiceMonitor{"agora/t-agora": m}, nil, nil, nil,
		assets.NewTestStoreBuilder(), nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := &targetgroup.Group{}
	for n := range 3 {
		pods.Targets = append(pods.Targets, discovered(get[core.Service](t, all, "Service/t-agora-admin"), n))
	}
	whole := strings.ReplaceAll(string(made), "$(SHARD)", "0") // one Prometheus scrapes all
	return monitored{string(text), scraped(t, whole, pods)}
}

// discovered is what Prometheus learns from Kubernetes about the port of a service at one of its pods.
func discovered(s *core.Service, n int) model.LabelSet {
	pod := model.LabelValue(fmt.Sprintf("t-agora-7d9f4-%d", n+1))
	found := model.LabelSet{
		"__address__":                                    model.LabelValue(fmt.Sprintf("10.1.0.%d:9100", n+1)),
		"__meta_kubernetes_namespace":                    "agora",
		"__meta_kubernetes_service_name":                 model.LabelValue(s.Name),
		"__meta_kubernetes_endpoint_port_name":           model.LabelValue(s.Spec.Ports[0].Name),
		"__meta_kubernetes_endpoint_address_target_kind": "Pod",
		"__meta_kubernetes_endpoint_address_target_name": pod,
		"__meta_kubernetes_pod_name":                     pod,
		"__meta_kubernetes_pod_container_name":           "edge",
		"__meta_kubernetes_pod_phase":                    "Running",
	}
	for name, value := range s.Labels {
		name = strutil.SanitizeLabelName(name)
		found[model.LabelName("__meta_kubernetes_service_label_"+name)] = model.LabelValue(value)
		found[model.LabelName("__meta_kubernetes_service_labelpresent_"+name)] = "true"
	}
	return found
}

// monitoredByCompose returns what the Prometheus of docker-compose.yml makes of the files that it is given.
func monitoredByCompose(t *testing.T) monitored {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../../deploy/prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return monitored{read("alerts.yml"), scraped(t, read("prometheus.yml"), nil)}
}

// scraped returns the labels of what is scraped by a configuration of one job: of what was found, or of what is written
// there.
func scraped(t *testing.T, text string, found *targetgroup.Group) (all []labels.Labels) {
	t.Helper()
	c, err := config.Load(text, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	jobs, err := c.GetScrapeConfigs()
	if err != nil || len(jobs) != 1 {
		t.Fatalf("there are %d jobs (%v)", len(jobs), err)
	}
	if static, is := jobs[0].ServiceDiscoveryConfigs[0].(discovery.StaticConfig); is {
		found = static[0]
	}
	targets, errs := scrape.TargetsFromGroup(found, jobs[0], nil, labels.NewBuilder(labels.EmptyLabels()))
	for _, target := range targets {
		all = append(all, target.Labels(labels.NewBuilder(labels.EmptyLabels())))
	}
	if len(errs) > 0 || len(all) != 3 || all[0].IsEmpty() {
		t.Fatalf("%v are scraped, want 3 edges (%v), by\n%s", all, errs, text)
	}
	return all
}
