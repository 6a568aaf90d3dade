{{/* Names have 40 letters at most, so that those of pods and volumes, which begin with them, are not too long. */}}
{{- define "agora.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "agora.fullname" -}}
{{- $name := include "agora.name" . }}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "agora.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "agora.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "agora.selector" -}}
app.kubernetes.io/name: {{ include "agora.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "agora.labels" -}}
{{ include "agora.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What selects the pods of a component: "root", "component". */}}
{{- define "agora.componentSelector" -}}
{{ include "agora.selector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* The labels of the pods of a component: "root", "component", and "more" labels. Those by which pods are selected can't be others. */}}
{{- define "agora.podLabels" -}}
{{- toYaml (merge (include "agora.componentSelector" . | fromYaml) (.more | default dict) (include "agora.labels" .root | fromYaml)) }}
{{- end }}

{{- define "agora.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The pods of a component, to a NetworkPolicy: "root", "component". */}}
{{- define "agora.peer" -}}
podSelector: { matchLabels: { app.kubernetes.io/instance: {{ .root.Release.Name | quote }}, app.kubernetes.io/component: {{ .component }} } }
{{- end }}

{{/* The Deployment that runs, as JSON: {} where there is none, or nobody to ask, as in `helm template`. */}}
{{- define "agora.live" -}}
{{- lookup "apps/v1" "Deployment" .Release.Namespace (include "agora.fullname" .) | default dict | toJson }}
{{- end }}

{{/* Not empty where another than Helm has said how many edges there are, and Helm applies on the server's side: then that stays when Helm
     does not say it. */}}
{{- define "agora.scaledByOthers" -}}
{{- $applied := false }}{{ $other := false }}
{{- range dig "metadata" "managedFields" list . }}
{{- if eq .operation "Apply" }}{{ $applied = true }}
{{- else if hasKey (dig "f:spec" dict .fieldsV1) "f:replicas" }}{{ $other = true }}{{ end }}
{{- end }}
{{- if and $applied $other }}yes{{ end }}
{{- end }}

{{/* The number of edges that the Deployment is to say; empty where it says none. A number that others decide is said as it is now, unless
     it is theirs already: if it were left out where it stood before, Kubernetes would make it one. */}}
{{- define "agora.replicas" -}}
{{- $live := include "agora.live" . | fromJson }}
{{- $number := dig "spec" "replicas" "" $live | toString }}
{{- $theirs := include "agora.scaledByOthers" $live }}
{{- if .Values.autoscaling.enabled }}
{{- if and $number (not (and $theirs (gt (int $number) 0))) }}{{ max (int $number) (int .Values.autoscaling.minReplicas) }}{{ end }}
{{- else if kindIs "invalid" .Values.replicas }}{{ if and $number (not $theirs) }}{{ int $number }}{{ end }}
{{- else }}{{ int .Values.replicas }}{{ end }}
{{- end }}

{{- define "agora.trialPassword" -}}
{{- required "trial.password must be given for what is bundled" .Values.trial.password }}
{{- end }}

{{/* Changes with the password of what is bundled, and does not tell it. */}}
{{- define "agora.trialChecksum" -}}
{{- printf "%s %s %s" .Release.Namespace (include "agora.fullname" .) (include "agora.trialPassword" .) | sha256sum }}
{{- end }}

{{/* The volumes that outlive the release. */}}
{{- define "agora.claims" -}}
{{- $name := include "agora.fullname" . }}
{{- if .Values.nats.bundled }}{{ range $n := until (int .Values.trial.nats.replicas) }}data-{{ $name }}-nats-{{ $n }} {{ end }}{{ end }}
{{- if .Values.redis.bundled }}data-{{ $name }}-redis-0{{ end }}
{{- end }}

{{/* Not empty where the admin port speaks TLS; its certificate may be one that no probe could prove itself to. */}}
{{- define "agora.adminTLS" -}}
{{- include "agora.configHas" (dict "config" .Values.config "setting" "admin.tls.cert") }}
{{- end }}

{{/* Not empty where edges speak TLS with agents themselves. */}}
{{- define "agora.publicTLS" -}}
{{- include "agora.configHas" (dict "config" .Values.config "setting" "tls.cert") }}
{{- end }}

{{/* The name of the Service that has the port "grpc" or "p2p": "root", "port". */}}
{{- define "agora.serviceOf" -}}
{{- include "agora.fullname" .root }}{{ if (index .root.Values (printf "%sService" .port)).enabled }}-{{ .port }}{{ end }}
{{- end }}

{{/* Bytes of a quantity of Kubernetes: "name" of the value, "quantity". */}}
{{- define "agora.bytes" -}}
{{- $form := "^([0-9.]+(?:[eE][+-]?[0-9]+)?)(k|[KMGTPE]i|[mMGTPE])?$" }}
{{- if not (regexMatch $form .quantity) }}{{ fail (printf "%s: %s is no quantity" .name .quantity) }}{{ end }}
{{- $units := dict "" 1 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 0x1p10 "Mi" 0x1p20 "Gi" 0x1p30 "Ti" 0x1p40 "Pi" 0x1p50 "Ei" 0x1p60 }}
{{- mulf (float64 (regexReplaceAll $form .quantity "${1}")) (get $units (regexReplaceAll $form .quantity "${2}")) | int64 }}
{{- end }}
