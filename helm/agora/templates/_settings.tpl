{{/* The settings that the chart decides by values of its own. */}}
{{- define "agora.ownSettings" -}}
id addr grpc-addr p2p-addr admin-addr start.timeout drain.delay drain.timeout auth nats.url redis.url kubernetes.pod-deletion-cost
{{- end }}

{{/* The settings that are secrets. */}}
{{- define "agora.secretSettings" -}}
nats.password nats.token p2p.cluster-key redis.password redis.sentinel.password
{{- end }}

{{/* Not empty where config has a setting, by its whole name or in groups: "config", "setting". */}}
{{- define "agora.configHas" -}}
{{- $in := .config }}{{ $said := hasKey .config .setting }}
{{- $keys := splitList "." .setting }}
{{- range $n, $key := $keys }}
{{- if and (kindIs "map" $in) (hasKey $in $key) }}{{ $in = index $in $key }}{{ if eq (add1 $n) (len $keys) }}{{ $said = true }}{{ end }}{{ else }}{{ $in = "" }}{{ end }}
{{- end }}
{{- if $said }}yes{{ end }}
{{- end }}

{{- define "agora.variable" -}}
AGORA_{{ . | upper | replace "." "_" | replace "-" "_" }}
{{- end }}

{{/* The file of settings: what the chart decides, and config over it. */}}
{{- define "agora.config" -}}
{{- $name := include "agora.fullname" . }}
{{- range include "agora.ownSettings" . | splitList " " }}
{{- if include "agora.configHas" (dict "config" $.Values.config "setting" .) }}{{ fail (printf "config: %s is the chart's to say: see auth, service, nats, redis, start, drain and podDeletionCost" .) }}{{ end }}
{{- end }}
{{- range include "agora.secretSettings" . | splitList " " }}
{{- if include "agora.configHas" (dict "config" $.Values.config "setting" .) }}{{ fail (printf "config: %s is a secret, and who may read pods could read it: see secretSettings" .) }}{{ end }}
{{- end }}
{{- if and .Values.nats.bundled .Values.nats.url }}{{ fail "nats: only one of url and bundled" }}{{ end }}
{{- if and .Values.redis.bundled .Values.redis.url }}{{ fail "redis: only one of url and bundled" }}{{ end }}
{{- $c := dict "addr" ":8080" "admin-addr" ":9100" "grpc-addr" "none" "p2p-addr" "none" "log.format" "json" }}
{{- if .Values.service.p2pPort }}{{ $_ := set $c "p2p-addr" ":9000" }}{{ end }}
{{- with .Values.service.grpcPort }}
{{- $_ := set $c "grpc-addr" ":50051" }}
{{- $_ := set $c "aip.advertise" (printf "%s.%s:%d" (include "agora.serviceOf" (dict "root" $ "port" "grpc")) $.Release.Namespace (int .)) }}
{{- end }}
{{- $_ := set $c "start.timeout" (printf "%ds" (int .Values.start.timeoutSeconds)) }}
{{- $_ := set $c "drain.delay" (printf "%ds" (int .Values.drain.delaySeconds)) }}
{{- $_ := set $c "drain.timeout" (printf "%ds" (int .Values.drain.timeoutSeconds)) }}
{{- if and .Values.auth.tokensSecret .Values.auth.mode }}{{ fail "auth: only one of tokensSecret and mode" }}{{ end }}
{{- if .Values.auth.tokensSecret }}{{ $_ := set $c "auth" (printf "file:/etc/agora/tokens/%s" .Values.auth.tokensKey) }}
{{- else }}{{ $_ := set $c "auth" (required "auth must be said: auth.tokensSecret, or auth.mode jwt, mtls or none" .Values.auth.mode) }}{{ end }}
{{- if .Values.nats.bundled }}
{{- $urls := list }}
{{- range $n := until (int .Values.trial.nats.replicas) }}{{ $urls = append $urls (printf "nats://%s-nats-%d.%s-nats:4222" $name $n $name) }}{{ end }}
{{- $_ := set $c "nats.url" $urls }}{{ $_ := set $c "nats.user" "edge" }}{{ $_ := set $c "nats.replicas" (int .Values.trial.nats.replicas) }}
{{- else if not .Values.nats.url }}{{ fail "nats.url must be given, or nats.bundled for a trial" }}
{{- else }}{{ $_ := set $c "nats.url" .Values.nats.url }}{{ end }}
{{- if .Values.redis.bundled }}{{ $_ := set $c "redis.url" (printf "redis://%s-redis:6379" $name) }}{{ $_ := set $c "redis.user" "edge" }}
{{- else }}{{ $_ := set $c "redis.url" (required "redis.url must be given, or redis.bundled for a trial" .Values.redis.url) }}{{ end }}
{{- if .Values.podDeletionCost.enabled }}{{ $_ := set $c "kubernetes.pod-deletion-cost" true }}{{ end }}
{{- if .Values.policy }}
{{- if include "agora.configHas" (dict "config" .Values.config "setting" "policy") }}{{ fail "policy: only one of the value and of config" }}{{ end }}
{{- $_ := set $c "policy" "/etc/agora/config/policy.yaml" }}
{{- end }}
{{- toYaml (mergeOverwrite $c .Values.config) }}
{{- end }}

{{/* The settings, and the rules, are annotations of the pod: each ReplicaSet has its own, and going back to one goes back to its settings. */}}
{{- define "agora.settings" -}}
agora/settings: |
  {{- include "agora.config" . | nindent 2 }}
{{- with .Values.policy }}
agora/policy: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if gt (add (len (include "agora.config" .)) (len (toYaml .Values.policy))) 200000 }}
{{- fail "config and policy are too long for annotations of a pod: put the policy into a ConfigMap, and that into files" }}
{{- end }}
{{- end }}

{{/* The environment of an edge, and of the check of its settings: "root", and "early" where the check runs before the release's own
     Secret is there. What the password is does not matter to it. */}}
{{- define "agora.env" -}}
{{- $early := .early }}
{{- with .root }}
{{- $own := list "POD_NAME" "POD_IP" "HOST_IP" "AGORA_CONFIG" }}
{{- range include "agora.ownSettings" . | splitList " " }}{{ $own = append $own (include "agora.variable" .) }}{{ end }}
{{- $memory := include "agora.memory" . }}
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- { name: AGORA_CONFIG, value: /etc/agora/config/agora.yaml }
{{- range $part := list "nats" "redis" }}
{{- if (index $.root.Values $part).bundled }}
- name: AGORA_{{ upper $part }}_PASSWORD
  {{- if $early }}
  value: not-looked-at
  {{- else }}
  valueFrom: { secretKeyRef: { name: {{ include "agora.fullname" $.root }}-trial, key: password } }
  {{- end }}
{{- end }}
{{- end }}
{{- if .Values.service.p2pPort }}
{{- with .Values.p2p.clusterKeySecret.name }}
- name: AGORA_P2P_CLUSTER_KEY
  valueFrom: { secretKeyRef: { name: {{ . | quote }}, key: {{ $.root.Values.p2p.clusterKeySecret.key | quote }} } }
{{- end }}
{{- if not (include "agora.configHas" (dict "config" .Values.config "setting" "p2p.announce")) }}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
{{- $at := printf "/%s/$(POD_IP)/tcp/9000" .Values.p2p.family }}
{{- with .Values.p2p.hostPort }}
- name: HOST_IP
  valueFrom: { fieldRef: { fieldPath: status.hostIP } }
{{- $at = printf "%s,/%s/$(HOST_IP)/tcp/%d" $at $.root.Values.p2p.family (int .) }}
{{- end }}
- { name: AGORA_P2P_ANNOUNCE, value: {{ $at | quote }} }
{{- end }}
{{- end }}
{{- range .Values.secretSettings }}
- name: {{ include "agora.variable" .setting }}
  valueFrom: { secretKeyRef: { name: {{ .secret | quote }}, key: {{ .key | quote }} } }
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name $own }}{{ fail (printf "extraEnv: %s is the chart's to say" .name) }}{{ end }}
{{- if eq .name "GOMEMLIMIT" }}{{ $memory = "" }}{{ end }}
{{- end }}
{{- with $memory }}
- { name: GOMEMLIMIT, value: {{ . | quote }} }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Nine tenths of the memory limit: from there on garbage is collected more often, before Kubernetes kills the edge. */}}
{{- define "agora.memory" -}}
{{- with dig "limits" "memory" "" .Values.resources | toString }}
{{- $bytes := include "agora.bytes" (dict "name" "resources.limits.memory" "quantity" .) }}
{{- printf "%dMiB" (int64 (floor (divf (mulf (float64 $bytes) 0.9) 1048576))) }}
{{- end }}
{{- end }}
