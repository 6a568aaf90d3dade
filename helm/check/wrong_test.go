package check

import (
	"strings"
	"testing"
)

// trialOf returns values of a trial, but for what is said of NATS and Redis.
func trialOf(nats, redis string) string {
	return "auth: {mode: none}\ntrial: {password: x}\nnats: {" + nats + "}\nredis: {" + redis + "}\n"
}

// wrong are values that make no sense, and what is said about them: schema and templates refuse them.
var wrong = []struct{ values, want string }{
	{"", "auth must be said"},
	{"auth: {mode: jwt}", "nats.url must be given"},
	{"auth: {mode: jwt}\nnats: {url: ['nats://a']}", "redis.url must be given"},
	{"auth: {mode: jwt, tokensSecret: x}", "only one of"},
	{"auth: {mode: none}\nnats: {bundled: true}\nredis: {bundled: true}", "trial.password must be given"},
	{trialOf("bundled: true, url: ['nats://nats:4222']", "bundled: true"), "nats: only one of url and bundled"},
	{trialOf("url: ['nats://nats:4222']", "bundled: true, url: 'redis://redis:6379'"), "redis: only one of url and bundled"},
	{trialOf("bundled: true", "bundled: true") + "global: 3", "/global"},
	{"trial: {password: '1234'}", "/trial/password"},
	{"trial: {nats: {replicas: 2}}", "/trial/nats/replicas"},
	{"trial: {nats: {storage: 20GB}}", "/trial/nats/storage"},
	{"trial: {redis: {storage: 0}}", "/trial/redis/storage"},
	{minimal + "replica: 3", "replica"},
	{minimal + "replicas: three", "/replicas"},
	{minimal + "replicas: -1", "/replicas"},
	{minimal + "replicas: '3'", "/replicas"},
	{minimal + "nameOverride: Relay", "/nameOverride"},
	{minimal + "fullnameOverride: a.b", "/fullnameOverride"},
	{minimal + "fullnameOverride: " + strings.Repeat("a", 41), "/fullnameOverride"},
	{minimal + "commonLabels: {a: 1}", "/commonLabels/a"},
	{"auth: {mode: maybe}", "/auth/mode"},
	{"auth: {tokensKey: ''}", "/auth/tokensKey"},
	{minimal + "image: {digest: 'sha256:12'}", "/image/digest"},
	{minimal + "image: {pullPolicy: Sometimes}", "/image/pullPolicy"},
	{minimal + "imagePullSecrets: [registry]", "/imagePullSecrets/0"},
	{minimal + "strategy: {type: OnDelete}", "/strategy/type"},
	{minimal + "minReadySeconds: soon", "/minReadySeconds"},
	{minimal + "revisionHistoryLimit: -1", "/revisionHistoryLimit"},
	{minimal + "config: [a]", "/config"},
	{minimal + "config: {addr: ':1'}", "config: addr is the chart's to say"},
	{minimal + "config: {start.timeout: 1m}", "config: start.timeout is the chart's to say"},
	{minimal + "config: {drain: {timeout: 1m}}", "config: drain.timeout is the chart's to say"},
	{minimal + "config: {nats.password: x}", "config: nats.password is a secret"},
	{minimal + "config: {redis: {sentinel: {password: x}}}", "config: redis.sentinel.password is a secret"},
	{minimal + "config: {policy: /p}\npolicy: {rules: []}", "policy: only one of the value and of config"},
	{minimal + "config: {note: '" + strings.Repeat("a", 200000) + "'}", "too long for annotations"},
	{minimal + "secretSettings: [{setting: nats.password, secret: nats}]", "/secretSettings/0"},
	{minimal + "secretSettings: [{setting: NATS_PASSWORD, secret: nats, key: p}]", "/secretSettings/0/setting"},
	{minimal + "files: [{path: /x}]", "needs secret or configMap"},
	{minimal + "files: [{path: x, secret: y}]", "/files/0/path"},
	{minimal + "extraEnv: [{name: AGORA_CONFIG, value: /x}]", "extraEnv: AGORA_CONFIG is the chart's to say"},
	{minimal + "extraEnv: [{value: x}]", "/extraEnv/0"},
	{minimal + "extraEnv: [{name: A, value: on}]", "/extraEnv/0/value"},
	{minimal + "envFrom: [{prefix: A}]", "/envFrom/0"},
	{minimal + "extraVolumes: [{name: config, emptyDir: {}}]", "/extraVolumes/0/name"},
	{minimal + "extraVolumeMounts: [{name: a, mountPath: b}]", "/extraVolumeMounts/0/mountPath"},
	{minimal + "sidecars: [{name: edge, image: x}]", "/sidecars/0/name"},
	{minimal + "initContainers: [{image: x}]", "/initContainers/0"},
	{minimal + "extraObjects: [3]", "/extraObjects/0"},
	{"nats: {url: 'nats://nats:4222'}", "/nats/url"},
	{"redis: {url: 'http://redis'}", "/redis/url"},
	{minimal + "start: {timeoutSeconds: 0}", "/start/timeoutSeconds"},
	{minimal + "drain: {timeoutSeconds: 25s}", "/drain/timeoutSeconds"},
	{minimal + "configCheck: {enabled: 'yes'}", "/configCheck/enabled"},
	{minimal + "resources: {limits: {memory: 1GB}}", "resources.limits.memory: 1GB"},
	{minimal + "service: {type: ExternalName}", "/service/type"},
	{minimal + "service: {port: 0}", "/service/port"},
	{minimal + "service: {nodePort: 30080}", "service: nodePort and externalTrafficPolicy need type"},
	{minimal + "service: {externalTrafficPolicy: Local}", "service: nodePort and externalTrafficPolicy need type"},
	{minimal + "service: {type: NodePort, loadBalancerClass: a}", "service: loadBalancerClass and loadBalancerSourceRanges need type LoadBalancer"},
	{minimal + "grpcService: {enabled: true, loadBalancerSourceRanges: [10.0.0.0/8]}", "grpcService: loadBalancerClass and"},
	{minimal + "p2pService: {enabled: true, nodePort: 30080}", "p2pService: nodePort and"},
	{minimal + "service: {loadBalancerSourceRanges: [10.0.0.1]}", "/service/loadBalancerSourceRanges/0"},
	{minimal + "p2p: {family: ipv4}", "/p2p/family"},
	{minimal + "p2p: {hostPort: 70000}", "/p2p/hostPort"},
	{minimal + "ingress: {enabled: true}", "ingress.host must be given"},
	{minimal + "ingress: {path: ws}", "/ingress/path"},
	{minimal + "ingress: {hosts: [{path: /}]}", "/ingress/hosts/0"},
	{minimal + "httpRoute: {enabled: true}", "httpRoute.parentRefs must name a Gateway"},
	{minimal + "httpRoute: {timeouts: {request: never}}", "/httpRoute/timeouts/request"},
	{minimal + "grpcRoute: {enabled: true}", "grpcRoute.parentRefs must name a Gateway"},
	{minimal + "grpcRoute: {enabled: true, parentRefs: [{name: a}]}\nservice: {grpcPort: 0}", "grpcRoute needs service.grpcPort"},
	{minimal + "autoscaling: {enabled: true}\nresources: {requests: {cpu: null}}", "resources.requests.cpu"},
	{minimal + "autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 4}", "autoscaling.maxReplicas is less"},
	{minimal + "autoscaling: {cpu: 0}", "/autoscaling/cpu"},
	{minimal + "podDisruptionBudget: {maxUnavailable: 0}", "/podDisruptionBudget/maxUnavailable"},
	{minimal + "podDeletionCost: {apiPorts: []}", "/podDeletionCost/apiPorts"},
	{minimal + "podDeletionCost: {enabled: true}\nserviceAccount: {create: false}", "podDeletionCost gives edges' account a right"},
	{minimal + "config: {kubernetes.pod-deletion-cost: true}", "is the chart's to say"},
	{minimal + "networkPolicy: {redisPorts: []}", "/networkPolicy/redisPorts"},
	{minimal + "serviceMonitor: {interval: 15}", "/serviceMonitor/interval"},
	{minimal + "serviceAccount: {create: 1}", "/serviceAccount/create"},
	{minimal + "podAnnotations: {a: true}", "/podAnnotations/a"},
	{minimal + "nodeSelector: {ssd: true}", "/nodeSelector/ssd"},
	{minimal + "tolerations: [{key: a, effect: Never}]", "/tolerations/0/effect"},
	{minimal + "affinity: {nodes: {}}", "/affinity"},
	{minimal + "topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]", "/topologySpreadConstraints/0/maxSkew"},
}

func TestValuesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range wrong {
		if _, err := render(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("values %.80q: got %v, want %q", c.values, err, c.want)
		}
	}
}
