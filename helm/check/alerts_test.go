package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
)

// well is what three edges export while all is well, as promtool writes series: a value and what each minute adds.
var well = map[string]string{
	`up`:                                     "1",
	`agora_ready`:                            "1",
	`agora_draining`:                         "0",
	`agora_nats_connected`:                   "1",
	`agora_nats_reconnects_total`:            "5",
	`agora_log_shard_led{stream="AGORA_M0"}`: "1",
	`agora_log_shard_bytes{stream="AGORA_M0"}`:                "100",
	`agora_log_shard_limit_bytes{stream="AGORA_M0"}`:          "1000",
	`agora_lease_left_seconds`:                                "9",
	`agora_lease_failures_total`:                              "2",
	`agora_sweep_timestamp_seconds`:                           "0+60",
	`agora_redis_pool_timeouts_total`:                         "1",
	`agora_latency_seconds_bucket{leg="stored",le="0.1"}`:     "0+60",
	`agora_latency_seconds_bucket{leg="stored",le="5"}`:       "0+60",
	`agora_latency_seconds_bucket{leg="stored",le="+Inf"}`:    "0+60",
	`agora_latency_seconds_bucket{leg="delivered",le="0.1"}`:  "0+60",
	`agora_latency_seconds_bucket{leg="delivered",le="5"}`:    "0+60",
	`agora_latency_seconds_bucket{leg="delivered",le="+Inf"}`: "0+60",
	`agora_shed_connections_total`:                            "0",
	`agora_shed_messages_total`:                               "0",
	`agora_shed_closed_total`:                                 "0",
	`agora_ws_connections`:                                    "100",
	`agora_limit_connections`:                                 "1000",
	`agora_ws_errors_total{code="UNAVAILABLE"}`:               "3",
	`agora_iat_errors_total{code="UNAVAILABLE"}`:              "3",
	`agora_ws_refused_total`:                                  "0+60",
	`agora_log_gaps_total`:                                    "0",
	`agora_log_repaired_total`:                                "0",
	`agora_log_void_total`:                                    "0",
	`agora_clock_skew_seconds`:                                "0",
	`agora_approvals_decided_total{state="expired"}`:          "0",
	`agora_build_info{version="v1.2.3"}`:                      "1",
	`agora_aip_calls_total{kind="tool",code="OK"}`:            "0+60",
	`agora_aip_calls_total{kind="tool",code="UNAVAILABLE"}`:   "0+1",
	`agora_links{state="up"}`:                                 "1",
	`agora_links{state="down"}`:                               "0",
}

// faults say for each alert what is different at the first edge, or at all of them, and which words the alert's text
// has then; EDGE1 is the name of the first edge.
var faults = []struct {
	alert  string
	differ map[string]string // "" for a series that is not there
	all    bool
	says   string
}{
	{alert: "AgoraEdgeDown", differ: map[string]string{`up`: "0"}, says: "EDGE1 0)."},
	{alert: "AgoraNoEdges", all: true, differ: map[string]string{`up`: ""}, says: "1). none"},
	{alert: "AgoraNoEdges", all: true, differ: map[string]string{`up`: "0"}, says: "1). EDGE1 EDGE2 EDGE3"},
	{alert: "AgoraEdgesMissing", differ: map[string]string{`up`: ""}, says: "2 EDGE2 EDGE3"},
	{alert: "AgoraEdgesMissing", all: true, differ: map[string]string{`up`: ""}, says: "0 none"},
	{alert: "AgoraEdgeNotReady", differ: map[string]string{`agora_ready`: "0"}, says: "EDGE1 0)."},
	{alert: "AgoraNATSDisconnected", differ: map[string]string{`agora_nats_connected`: "0"}, says: "EDGE1 0)."},
	{alert: "AgoraNATSFlapping", differ: map[string]string{`agora_nats_reconnects_total`: "0+1"}, says: "EDGE1 15"},
	{alert: "AgoraShardWithoutLeader", differ: map[string]string{`agora_log_shard_led{stream="AGORA_M0"}`: "0"}, says: "AGORA_M0 EDGE1 0)."},
	{alert: "AgoraShardNearlyFull", differ: map[string]string{`agora_log_shard_bytes{stream="AGORA_M0"}`: "850"}, says: "AGORA_M0 EDGE1 85%"},
	{alert: "AgoraLeaseAtRisk", differ: map[string]string{`agora_lease_left_seconds`: "2.5"}, says: "EDGE1 2.5"},
	{alert: "AgoraLeaseFailures", differ: map[string]string{`agora_lease_failures_total`: "0+4"}, says: "EDGE1 20"},
	{alert: "AgoraSweepFails", differ: map[string]string{`agora_sweep_timestamp_seconds`: "0"}, says: "EDGE1 3840"},
	{alert: "AgoraRedisPoolExhausted", differ: map[string]string{`agora_redis_pool_timeouts_total`: "0+1"}, says: "EDGE1 5"},
	{alert: "AgoraStoringSlow", differ: map[string]string{`agora_latency_seconds_bucket{leg="stored",le="0.1"}`: "0"}, says: "EDGE1 4.95"},
	{alert: "AgoraDeliverySlow", differ: map[string]string{`agora_latency_seconds_bucket{leg="delivered",le="0.1"}`: "0"}, says: "EDGE1 4.95"},
	{alert: "AgoraShedding", differ: map[string]string{`agora_shed_messages_total`: "0+60"}, says: "EDGE1 1"},
	{alert: "AgoraConnectionsNearLimit", differ: map[string]string{`agora_ws_connections`: "900"}, says: "EDGE1 90%"},
	{alert: "AgoraUnavailableTold", differ: map[string]string{`agora_ws_errors_total{code="UNAVAILABLE"}`: "0+120"}, says: "EDGE1 2"},
	{alert: "AgoraUnavailableTold", differ: map[string]string{`agora_iat_errors_total{code="UNAVAILABLE"}`: "0+120"}, says: "EDGE1 2"},
	{alert: "AgoraUnavailableTold", differ: map[string]string{`agora_iat_errors_total{code="UNAVAILABLE"}`: "", `agora_ws_errors_total{code="UNAVAILABLE"}`: "0+120"}, says: "EDGE1 2"},
	{alert: "AgoraRefusedConnections", differ: map[string]string{`agora_ws_refused_total`: "0+1200"}, says: "EDGE1 20"},
	{alert: "AgoraGapsTold", differ: map[string]string{`agora_log_gaps_total`: "0+2"}, says: "EDGE1 30"},
	{alert: "AgoraApprovalsExpired", differ: map[string]string{`agora_approvals_decided_total{state="expired"}`: "0+1"}, says: "EDGE1 60"},
	{alert: "AgoraAIPCallsFailing", differ: map[string]string{`agora_aip_calls_total{kind="tool",code="UNAVAILABLE"}`: "0+60"}, says: "EDGE1 50%"},
	{alert: "AgoraLinkDown", differ: map[string]string{`agora_links{state="down"}`: "2"}, says: "EDGE1 2"},
	{alert: "AgoraTailsRepaired", differ: map[string]string{`agora_log_repaired_total`: "0+2"}, says: "EDGE1 30"},
	{alert: "AgoraRecordsVoid", differ: map[string]string{`agora_log_void_total`: "0+1"}, says: "EDGE1 15"},
	{alert: "AgoraClockSkewed", differ: map[string]string{`agora_clock_skew_seconds`: "-6"}, says: "EDGE1 6.0"},
	{alert: "AgoraVersionsDiffer", differ: map[string]string{`agora_build_info{version="v1.2.3"}`: "", `agora_build_info{version="v1.3.0"}`: "1"}, says: "2 EDGE1 (v1.3.0)"},
}

// ways are the ways to run edges that come with rules for Prometheus.
func ways(t *testing.T) map[string]monitored {
	return map[string]monitored{"chart": monitoredByChart(t, minimal), "compose": monitoredByCompose(t)}
}

func TestEveryAlertFiresAndSaysWhereAndHowMuch(t *testing.T) {
	for name, m := range ways(t) {
		t.Run(name, func(t *testing.T) {
			untried := map[string]bool{}
			for _, r := range load(t, m.rules, stored(t, "load 1m\n x 1")) {
				untried[r.Name()] = true
			}
			for _, f := range faults {
				delete(untried, f.alert)
				fired := firing(t, m, f.differ, f.all)
				for word := range strings.FieldsSeq(f.says) {
					for n, edge := range m.edges {
						word = strings.ReplaceAll(word, fmt.Sprintf("EDGE%d", n+1), edge.Get("instance"))
					}
					if says, is := fired[f.alert]; !is || !slices.Contains(strings.Fields(says), word) {
						t.Errorf("%v: %s says %q, want %q in it", f.differ, f.alert, says, word)
					}
				}
			}
			for name := range untried {
				t.Errorf("%s is not tried", name)
			}
		})
	}
}

func TestNoAlertFiresWhileAllIsWell(t *testing.T) {
	for name, m := range ways(t) {
		if fired := firing(t, m, nil, false); len(fired) > 0 {
			t.Errorf("%s: %v", name, fired)
		}
		draining := map[string]string{"agora_draining": "1", "agora_ready": "0"}
		if fired := firing(t, m, draining, false); len(fired) > 0 {
			t.Errorf("%s: while an edge drains: %v", name, fired)
		}
	}
}

func TestTheChartExpectsAsManyEdgesAsItRuns(t *testing.T) {
	for values, expected := range map[string]int{
		"replicas: 2\n": 2,
		"replicas: 5\n": 5,
		"replicas: 1\nautoscaling: {enabled: true, minReplicas: 4}\n": 4,
	} {
		m := monitoredByChart(t, minimal+values)
		_, missing := firing(t, m, nil, false)["AgoraEdgesMissing"]
		if want := expected > 3; missing != want {
			t.Errorf("%q and three edges: that some are missing is told: %v, want %v", values, missing, want)
		}
	}
}

func TestAReleaseIsNotToldOfTheEdgesOfAnother(t *testing.T) {
	m := monitoredByChart(t, minimal)
	other := labels.NewBuilder(m.edges[0]).Set("namespace", "staging").Set("instance", "other").Labels()
	m.edges = append([]labels.Labels{other}, m.edges...)
	for _, f := range faults {
		if fired := firing(t, m, f.differ, false); !f.all && len(fired) > 0 {
			t.Errorf("%v at an edge of another namespace: %v", f.differ, fired)
		}
	}
}
