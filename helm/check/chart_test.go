package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"
)

const chartDir = "../agora"

// minimal are values that say no more than must be said.
const minimal = "auth: {tokensSecret: agora-tokens}\nnats: {url: ['nats://nats:4222']}\nredis: {url: 'redis://redis:6379'}\n"

// objects are what a chart renders to, by "Kind/name".
type objects map[string]any

// kinds are the types of all objects that the chart may make.
var kinds = map[string]func() any{
	"v1/ConfigMap":                           func() any { return &core.ConfigMap{} },
	"v1/Pod":                                 func() any { return &core.Pod{} },
	"v1/Secret":                              func() any { return &core.Secret{} },
	"v1/Service":                             func() any { return &core.Service{} },
	"v1/ServiceAccount":                      func() any { return &core.ServiceAccount{} },
	"apps/v1/Deployment":                     func() any { return &apps.Deployment{} },
	"apps/v1/StatefulSet":                    func() any { return &apps.StatefulSet{} },
	"batch/v1/Job":                           func() any { return &batch.Job{} },
	"autoscaling/v2/HorizontalPodAutoscaler": func() any { return &autoscaling.HorizontalPodAutoscaler{} },
	"monitoring.coreos.com/v1/PrometheusRule":  func() any { return &monitoring.PrometheusRule{} },
	"monitoring.coreos.com/v1/ServiceMonitor":  func() any { return &monitoring.ServiceMonitor{} },
	"gateway.networking.k8s.io/v1/GRPCRoute":   func() any { return &gateway.GRPCRoute{} },
	"gateway.networking.k8s.io/v1/HTTPRoute":   func() any { return &gateway.HTTPRoute{} },
	"keda.sh/v1alpha1/ScaledObject":            func() any { return &unstructured.Unstructured{} }, // an example of an object of somebody's own
	"networking.k8s.io/v1/Ingress":             func() any { return &networking.Ingress{} },
	"networking.k8s.io/v1/NetworkPolicy":       func() any { return &networking.NetworkPolicy{} },
	"rbac.authorization.k8s.io/v1/Role":        func() any { return &rbac.Role{} },
	"rbac.authorization.k8s.io/v1/RoleBinding": func() any { return &rbac.RoleBinding{} },
	"policy/v1/PodDisruptionBudget":            func() any { return &policy.PodDisruptionBudget{} },
}

// cluster is what Helm finds where it installs; the zero one is that of `helm template`, which knows no cluster.
type cluster struct {
	release string           // its name; "t" if empty
	objects []runtime.Object // that are there already
	apis    []string         // that it serves besides those of Kubernetes itself
}

// GetClientFor returns what looks for objects of one kind.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	group, err := schema.ParseGroupVersion(apiVersion)
	return fake.NewSimpleDynamicClient(scheme.Scheme, c.objects...).Resource(group.WithResource(strings.ToLower(kind) + "s")), true, err
}

// render returns the text of every template under values, by its name.
func (c cluster) render(values string) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: cmp.Or(c.release, "t"), Namespace: "agora", IsInstall: true}
	serves := common.DefaultCapabilities.Copy()
	serves.APIVersions = append(slices.Clone(serves.APIVersions), c.apis...)
	all, err := util.ToRenderValues(chart, given, release, serves)
	if err != nil {
		return nil, err
	}
	return engine.RenderWithClientProvider(chart, all, c)
}

// render returns the text of every template under values, as `helm template` has it, by its name.
func render(values string) (map[string]string, error) { return cluster{}.render(values) }

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// decode reads every object of the texts into its type; a field that the type does not have is an error.
func decode(texts map[string]string) (objects, error) {
	all, errs := objects{}, []error(nil)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, text := range separator.Split(texts[name], -1) {
			key, o, err := object(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			} else if key != "" {
				all[key] = o
			}
		}
	}
	return all, errors.Join(errs...)
}

// object decodes one object; a text that is empty has none.
func object(text string) (key string, o any, err error) {
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil || head.Kind == "" {
		return "", nil, err
	}
	make, known := kinds[head.APIVersion+"/"+head.Kind]
	if !known {
		return "", nil, fmt.Errorf("%s %s is no object that this chart makes", head.APIVersion, head.Kind)
	}
	o = make()
	return head.Kind + "/" + head.Metadata.Name, o, yaml.UnmarshalStrict([]byte(text), o)
}

// rendered returns the objects under values.
func (c cluster) rendered(t *testing.T, values string) objects {
	t.Helper()
	texts, err := c.render(values)
	if err != nil {
		t.Fatal(err)
	}
	all, err := decode(texts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rendered returns the objects under values, as `helm template` has them.
func rendered(t *testing.T, values string) objects {
	t.Helper()
	return cluster{}.rendered(t, values)
}

// notes returns what Helm says to who has installed the chart.
func (c cluster) notes(t *testing.T, values string) string {
	t.Helper()
	texts, err := c.render(values)
	if err != nil {
		t.Fatal(err)
	}
	return texts["agora/templates/NOTES.txt"]
}

// get returns one object, which must be there.
func get[T any](t *testing.T, all objects, key string) *T {
	t.Helper()
	o, is := all[key].(*T)
	if !is {
		t.Fatalf("there is no %s among %v", key, slices.Sorted(maps.Keys(all)))
	}
	return o
}

// fullname returns the name that the objects of a release have, or begin with.
func fullname(t *testing.T, all objects) string {
	t.Helper()
	for _, o := range all {
		if d, is := o.(*apps.Deployment); is {
			return d.Name
		}
	}
	t.Fatalf("there are no edges among %v", slices.Sorted(maps.Keys(all)))
	return ""
}

// edges returns what the Deployment of a release is to be.
func edges(t *testing.T, all objects) apps.DeploymentSpec {
	t.Helper()
	return get[apps.Deployment](t, all, "Deployment/"+fullname(t, all)).Spec
}

// files returns the contents of the chart's files of values, by their names.
func files(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(chartDir + "/ci/*.yaml")
	if err != nil || len(names) < 4 {
		t.Fatalf("ci/*.yaml are %v (%v)", names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(text)
	}
	return all
}
