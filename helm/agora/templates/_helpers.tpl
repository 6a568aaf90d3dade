{{- define "agora.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "agora.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "agora.labels" -}}
{{ include "agora.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "agora.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "agora.podSecurity" -}}
runAsNonRoot: true
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "agora.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* The settings that the chart decides by values of its own. */}}
{{- define "agora.ownSettings" -}}
id addr grpc-addr p2p-addr admin-addr drain.delay drain.timeout auth nats.url redis.url
{{- end }}

{{- define "agora.variable" -}}
AGORA_{{ . | upper | replace "." "_" | replace "-" "_" }}
{{- end }}

{{/* The environment of an edge, and of the check of its settings. */}}
{{- define "agora.env" -}}
{{- $own := list "POD_NAME" "POD_IP" "HOST_IP" "AGORA_CONFIG" }}
{{- range include "agora.ownSettings" . | splitList " " }}{{ $own = append $own (include "agora.variable" .) }}{{ end }}
{{- $memory := include "agora.memory" . }}
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- { name: AGORA_CONFIG, value: /etc/agora/config/agora.yaml }
{{- range $part := list "nats" "redis" }}
{{- if (index $.Values $part).bundled }}
- name: AGORA_{{ upper $part }}_PASSWORD
  valueFrom: { secretKeyRef: { name: {{ include "agora.fullname" $ }}-trial, key: password } }
{{- end }}
{{- end }}
{{- if .Values.service.p2pPort }}
{{- with .Values.p2p.clusterKeySecret.name }}
- name: AGORA_P2P_CLUSTER_KEY
  valueFrom: { secretKeyRef: { name: {{ . }}, key: {{ $.Values.p2p.clusterKeySecret.key }} } }
{{- end }}
{{- if not (or (hasKey .Values.config "p2p.announce") (dig "p2p" "announce" "" .Values.config)) }}
- name: POD_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
{{- $at := printf "/%s/$(POD_IP)/tcp/9000" .Values.p2p.family }}
{{- with .Values.p2p.hostPort }}
- name: HOST_IP
  valueFrom: { fieldRef: { fieldPath: status.hostIP } }
{{- $at = printf "%s,/%s/$(HOST_IP)/tcp/%d" $at $.Values.p2p.family (int .) }}
{{- end }}
- { name: AGORA_P2P_ANNOUNCE, value: {{ $at | quote }} }
{{- end }}
{{- end }}
{{- range .Values.secretSettings }}
- name: {{ include "agora.variable" .setting }}
  valueFrom: { secretKeyRef: { name: {{ .secret }}, key: {{ .key }} } }
{{- end }}
{{- range .Values.extraEnv }}
{{- if has .name $own }}{{ fail (printf "extraEnv: %s is the chart's to say" .name) }}{{ end }}
{{- if eq .name "GOMEMLIMIT" }}{{ $memory = "" }}{{ end }}
{{- end }}
{{- with $memory }}
- { name: GOMEMLIMIT, value: {{ . }} }
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Nine tenths of the memory limit: from there on garbage is collected more often, before Kubernetes kills the edge. */}}
{{- define "agora.memory" -}}
{{- with dig "limits" "memory" "" .Values.resources | toString }}
{{- $quantity := "^([0-9.]+(?:[eE][+-]?[0-9]+)?)(k|[KMGTPE]i|[mMGTPE])?$" }}
{{- if not (regexMatch $quantity .) }}{{ fail (printf "resources.limits.memory: %s is no quantity" .) }}{{ end }}
{{- $units := dict "" 1 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 0x1p10 "Mi" 0x1p20 "Gi" 0x1p30 "Ti" 0x1p40 "Pi" 0x1p50 "Ei" 0x1p60 }}
{{- $bytes := mulf (float64 (regexReplaceAll $quantity . "${1}")) (get $units (regexReplaceAll $quantity . "${2}")) }}
{{- printf "%dMiB" (int64 (floor (divf (mulf $bytes 0.9) 1048576))) }}
{{- end }}
{{- end }}

{{- define "agora.mounts" -}}
- { name: config, mountPath: /etc/agora/config, readOnly: true }
{{- if .Values.auth.tokensSecret }}
- { name: tokens, mountPath: /etc/agora/tokens, readOnly: true }
{{- end }}
{{- range $n, $f := .Values.files }}
- { name: file-{{ $n }}, mountPath: {{ $f.path }}, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The pod of `helm test`, to a NetworkPolicy. */}}
{{- define "agora.testPeer" -}}
podSelector: { matchLabels: { app.kubernetes.io/instance: {{ .Release.Name }}, app.kubernetes.io/component: test } }
{{- end }}

{{/* Where pods of a component go: "root", "component". */}}
{{- define "agora.spread" -}}
{{- range .root.Values.topologySpreadConstraints }}
- maxSkew: {{ .maxSkew }}
  topologyKey: {{ .topologyKey }}
  whenUnsatisfiable: {{ .whenUnsatisfiable }}
  labelSelector:
    matchLabels:
      {{- include "agora.selector" $.root | nindent 6 }}
      app.kubernetes.io/component: {{ $.component }}
{{- end }}
{{- end }}

{{/* The file of settings: what the chart decides, and config over it. */}}
{{- define "agora.config" -}}
{{- range include "agora.ownSettings" . | splitList " " }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config: %s is the chart's to say: see auth, service, nats, redis and drain" .) }}{{ end }}
{{- end }}
{{- if and .Values.nats.bundled .Values.nats.url }}{{ fail "nats: only one of url and bundled" }}{{ end }}
{{- if and .Values.redis.bundled .Values.redis.url }}{{ fail "redis: only one of url and bundled" }}{{ end }}
{{- $c := dict "addr" ":8080" "admin-addr" ":9100" "grpc-addr" "none" "p2p-addr" "none" "log.format" "json" }}
{{- if .Values.service.p2pPort }}{{ $_ := set $c "p2p-addr" ":9000" }}{{ end }}
{{- with .Values.service.grpcPort }}
{{- $_ := set $c "grpc-addr" ":50051" }}
{{- $_ := set $c "aip.advertise" (printf "%s.%s:%d" (include "agora.fullname" $) $.Release.Namespace (int .)) }}
{{- end }}
{{- $_ := set $c "drain.delay" (printf "%ds" (int .Values.drain.delaySeconds)) }}
{{- $_ := set $c "drain.timeout" (printf "%ds" (int .Values.drain.timeoutSeconds)) }}
{{- if and .Values.auth.tokensSecret .Values.auth.mode }}{{ fail "auth: only one of tokensSecret and mode" }}{{ end }}
{{- if .Values.auth.tokensSecret }}{{ $_ := set $c "auth" (printf "file:/etc/agora/tokens/%s" .Values.auth.tokensKey) }}
{{- else }}{{ $_ := set $c "auth" (required "auth must be said: auth.tokensSecret, or auth.mode jwt, mtls or none" .Values.auth.mode) }}{{ end }}
{{- if .Values.nats.bundled }}
{{- $urls := list }}
{{- range $n := until (int .Values.trial.nats.replicas) }}{{ $urls = append $urls (printf "nats://%s-nats-%d.%s-nats:4222" (include "agora.fullname" $) $n (include "agora.fullname" $)) }}{{ end }}
{{- $_ := set $c "nats.url" $urls }}{{ $_ := set $c "nats.user" "edge" }}{{ $_ := set $c "nats.replicas" (int .Values.trial.nats.replicas) }}
{{- else if not .Values.nats.url }}{{ fail "nats.url must be given, or nats.bundled for a trial" }}
{{- else }}{{ $_ := set $c "nats.url" .Values.nats.url }}{{ end }}
{{- if .Values.redis.bundled }}{{ $_ := set $c "redis.url" (printf "redis://%s-redis:6379" (include "agora.fullname" .)) }}{{ $_ := set $c "redis.user" "edge" }}
{{- else }}{{ $_ := set $c "redis.url" (required "redis.url must be given, or redis.bundled for a trial" .Values.redis.url) }}{{ end }}
{{- toYaml (mergeOverwrite $c .Values.config) }}
{{- end }}

{{- define "agora.trialPassword" -}}
{{- required "trial.password must be given for what is bundled" .Values.trial.password }}
{{- end }}

{{/* Not empty where the admin port speaks TLS; its certificate may be one that no probe could prove itself to. */}}
{{- define "agora.adminTLS" -}}
{{- if or (hasKey .Values.config "admin.tls.cert") (dig "admin" "tls" "cert" "" .Values.config) }}yes{{ end }}
{{- end }}

{{/* Not empty where edges speak TLS with agents themselves. */}}
{{- define "agora.publicTLS" -}}
{{- if or (hasKey .Values.config "tls.cert") (dig "tls" "cert" "" .Values.config) }}yes{{ end }}
{{- end }}

{{- define "agora.ask" -}}
{{- if include "agora.adminTLS" .root }}exec: { command: [/usr/bin/agora, health] }{{ else }}httpGet: { path: {{ .path }}, port: admin }{{ end }}
{{- end }}
