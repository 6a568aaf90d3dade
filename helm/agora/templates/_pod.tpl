{{/* What every pod of the release has in its spec. */}}
{{- define "agora.everyPod" -}}
automountServiceAccountToken: false
enableServiceLinks: false # AGORA_… variables of a service would be taken for settings
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every container has: its last words are in the status of its pod. */}}
{{- define "agora.everyContainer" -}}
terminationMessagePolicy: FallbackToLogsOnError
securityContext: {{- toYaml .Values.containerSecurityContext | nindent 2 }}
{{- end }}

{{- define "agora.ownImage" -}}
image: {{ include "agora.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{/* The container that checks the settings of a pod: "root", "resources", "early". */}}
{{- define "agora.check" -}}
- name: check
  {{- include "agora.ownImage" .root | nindent 2 }}
  args: [config, check, --id=$(POD_NAME)]
  env: {{- include "agora.env" . | trim | nindent 4 }}
  {{- with .root.Values.envFrom }}
  envFrom: {{- toYaml . | nindent 4 }}
  {{- end }}
  resources: {{- toYaml .resources | nindent 4 }}
  volumeMounts: {{- include "agora.mounts" .root | nindent 4 }}
  {{- include "agora.everyContainer" .root | nindent 2 }}
{{- end }}

{{- define "agora.mounts" -}}
- { name: config, mountPath: /etc/agora/config, readOnly: true }
{{- if .Values.auth.tokensSecret }}
- { name: tokens, mountPath: /etc/agora/tokens, readOnly: true }
{{- end }}
{{- range $n, $f := .Values.files }}
- { name: file-{{ $n }}, mountPath: {{ $f.path | quote }}, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "agora.volumes" -}}
- name: config
  downwardAPI:
    items:
      - { path: agora.yaml, fieldRef: { fieldPath: "metadata.annotations['agora/settings']" } }
      {{- if .Values.policy }}
      - { path: policy.yaml, fieldRef: { fieldPath: "metadata.annotations['agora/policy']" } }
      {{- end }}
{{- if .Values.auth.tokensSecret }}
- name: tokens
  secret: { secretName: {{ .Values.auth.tokensSecret | quote }}, defaultMode: 288 } # 0440
{{- end }}
{{- range $n, $f := .Values.files }}
- name: file-{{ $n }}
  {{- if $f.secret }}
  secret: { secretName: {{ $f.secret | quote }}, defaultMode: 288 }
  {{- else }}
  configMap: { name: {{ required "files: each needs secret or configMap" $f.configMap | quote }} }
  {{- end }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where pods of a component go: "root", "component". */}}
{{- define "agora.spread" -}}
{{- $own := dict "labelSelector" (dict "matchLabels" (include "agora.componentSelector" . | fromYaml)) }}
{{- range .root.Values.topologySpreadConstraints }}
{{ toYaml (list (ternary . (merge (deepCopy .) $own) (hasKey . "labelSelector"))) }}
{{- end }}
{{- end }}

{{- define "agora.ask" -}}
{{- if include "agora.adminTLS" .root }}exec: { command: [/usr/bin/agora, health] }{{ else }}httpGet: { path: {{ .path }}, port: admin }{{ end }}
{{- end }}
