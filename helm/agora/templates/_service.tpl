{{/* How a Service is reached: the name "of" its "values". */}}
{{- define "agora.exposure" -}}
{{- $v := .values }}
{{- if and (eq $v.type "ClusterIP") (or $v.nodePort $v.externalTrafficPolicy) }}
{{- fail (printf "%s: nodePort and externalTrafficPolicy need type NodePort or LoadBalancer" .of) }}
{{- end }}
{{- if and (ne $v.type "LoadBalancer") (or $v.loadBalancerClass $v.loadBalancerSourceRanges) }}
{{- fail (printf "%s: loadBalancerClass and loadBalancerSourceRanges need type LoadBalancer" .of) }}
{{- end -}}
type: {{ $v.type }}
{{- with $v.externalTrafficPolicy }}
externalTrafficPolicy: {{ . }}
{{- end }}
{{- with $v.loadBalancerClass }}
loadBalancerClass: {{ . | quote }}
{{- end }}
{{- with $v.loadBalancerSourceRanges }}
loadBalancerSourceRanges: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "agora.grpcPort" -}}
- name: grpc
  port: {{ .Values.service.grpcPort }}
  targetPort: grpc
  {{- if not (include "agora.publicTLS" .) }}
  appProtocol: kubernetes.io/h2c
  {{- end }}
{{- end }}

{{- define "agora.p2pPort" -}}
- name: p2p
  port: {{ .Values.service.p2pPort }}
  targetPort: p2p
{{- end }}
