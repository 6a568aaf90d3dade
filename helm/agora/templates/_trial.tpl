{{/* The password of before the last change, which Redis takes as well: edges that are not replaced yet have it. Empty where there was no other. */}}
{{- define "agora.previousPassword" -}}
{{- $data := dig "data" dict (lookup "v1" "Secret" .Release.Namespace (printf "%s-trial" (include "agora.fullname" .)) | default dict) }}
{{- $last := get $data "password" | b64dec }}{{ $before := get $data "previous" | b64dec }}
{{- if and $last (ne $last (include "agora.trialPassword" .)) }}{{ $last }}{{ else }}{{ $before }}{{ end }}
{{- end }}

{{/* The volumes of what is bundled: "root", "component". Kubernetes refuses others than those that a StatefulSet was made with, so that these stay. */}}
{{- define "agora.volumeClaims" -}}
{{- $trial := .root.Values.trial }}
{{- $spec := dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" (index $trial .component).storage)) }}
{{- with $trial.storageClass }}{{ $_ := set $spec "storageClassName" . }}{{ end }}
{{- range dig "spec" "volumeClaimTemplates" list (include "agora.liveTrial" . | fromJson) }}{{ $spec = .spec }}{{ end -}}
- metadata: { name: data }
  spec: {{- toYaml $spec | nindent 4 }}
{{- end }}

{{/* The StatefulSet of a component that runs, as JSON: "root", "component". */}}
{{- define "agora.liveTrial" -}}
{{- lookup "apps/v1" "StatefulSet" .root.Release.Namespace (printf "%s-%s" (include "agora.fullname" .root) .component) | default dict | toJson }}
{{- end }}

{{/* The configuration of the bundled NATS. A tenth of a server's volume is left for what its files are more than the messages. */}}
{{- define "agora.natsConfig" -}}
{{- $name := include "agora.fullname" . }}
{{- $store := mulf (float64 (include "agora.bytes" (dict "name" "trial.nats.storage" "quantity" .Values.trial.nats.storage))) 0.9 | int64 -}}
listen: 0.0.0.0:4222
http: 0.0.0.0:8222
max_payload: 8MB
jetstream { store_dir: /data, max_file_store: {{ $store }} }
{{- if gt (int .Values.trial.nats.replicas) 1 }}
cluster {
  name: "{{ $name }}"
  listen: 0.0.0.0:6222
  routes: [
    {{- range $n := until (int .Values.trial.nats.replicas) }}
    nats://{{ $name }}-nats-{{ $n }}.{{ $name }}-nats:6222
    {{- end }}
  ]
}
{{- end }}
accounts {
  AGORA {
    jetstream: enabled
    users: [ { user: edge, password: $EDGE_PASSWORD, permissions: { include ./edge-permissions.conf } } ]
  }
}
{{- end }}
