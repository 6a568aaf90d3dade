package check

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
)

const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// withoutToken returns what is mounted beside the token of the account, which the check of settings needs not.
func withoutToken(all []core.VolumeMount) []core.VolumeMount {
	return slices.DeleteFunc(slices.Clone(all), func(m core.VolumeMount) bool { return m.MountPath == tokenPath })
}

// withoutTokens returns the volumes beside that of the token.
func withoutTokens(all []core.Volume) []core.Volume {
	return slices.DeleteFunc(slices.Clone(all), func(v core.Volume) bool { return v.Projected != nil })
}

// kubernetesMounts names the containers that have the token of the account.
func kubernetesMounts(spec core.PodSpec) (names []string) {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, m := range c.VolumeMounts {
			if m.MountPath == tokenPath {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func TestAnEdgeHasNoRightsAtKubernetes(t *testing.T) {
	for name, values := range files(t) {
		if strings.Contains(values, "podDeletionCost") {
			continue
		}
		all := rendered(t, values)
		for key, spec := range pods(all) {
			if mounts := kubernetesMounts(spec); len(mounts) > 0 || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s has its account's token in %v", name, key, mounts)
			}
		}
		for key := range all {
			if strings.HasPrefix(key, "Role") {
				t.Errorf("%s: there is %s", name, key)
			}
		}
	}
}

func TestAnEdgeThatTellsHowManyAgentsItHasMayPatchPodsAndNoMore(t *testing.T) {
	all := rendered(t, minimal+"podDeletionCost: {enabled: true, apiPorts: [6443]}")
	rules := get[rbac.Role](t, all, "Role/t-agora-podcost").Rules
	if len(rules) != 1 || !slices.Equal(rules[0].Verbs, []string{"patch"}) || !slices.Equal(rules[0].Resources, []string{"pods"}) {
		t.Errorf("its rights are %v", rules)
	}
	spec := edges(t, all).Template.Spec
	to := get[rbac.RoleBinding](t, all, "RoleBinding/t-agora-podcost").Subjects
	if len(to) != 1 || to[0].Kind != "ServiceAccount" || to[0].Name != spec.ServiceAccountName || to[0].Namespace == "" {
		t.Errorf("they are given to %v, and the edge is %s", to, spec.ServiceAccountName)
	}
	if mounts := kubernetesMounts(spec); !slices.Equal(mounts, []string{"edge"}) || *spec.AutomountServiceAccountToken {
		t.Errorf("the token is in %v", mounts)
	}
	if settings := settingsOf(t, edges(t, all).Template); !strings.Contains(settings, "kubernetes.pod-deletion-cost: true\n") {
		t.Errorf("its settings are %s", settings)
	}
	if out := get[networking.NetworkPolicy](t, all, "NetworkPolicy/t-agora-podcost").Spec.Egress; len(out) != 1 || out[0].Ports[0].Port.IntValue() != 6443 {
		t.Errorf("it may reach %v", out)
	}
}
