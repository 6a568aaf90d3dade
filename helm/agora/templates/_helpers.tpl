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

{{/* The file of settings: what the chart decides, and config over it. */}}
{{- define "agora.config" -}}
{{- range list "id" "addr" "admin-addr" "drain.delay" "drain.timeout" "auth" "nats.url" "redis.url" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config: %s is the chart's to say: see auth, nats, redis and drain" .) }}{{ end }}
{{- end }}
{{- $c := dict "addr" ":8080" "admin-addr" ":9100" "log.format" "json" }}
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

{{- define "agora.ask" -}}
{{- if include "agora.adminTLS" .root }}exec: { command: [/usr/bin/agora, health] }{{ else }}httpGet: { path: {{ .path }}, port: admin }{{ end }}
{{- end }}
