// Package check is no code: its tests hold the chart helm/agora against Kubernetes' own types, and the alerts against
// Prometheus itself, offline. It is a module of its own, so that none of the three gets into what Agora is built of.
package check
