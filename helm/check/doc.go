// Package check is no code: its tests hold the chart helm/agora against Kubernetes' own types, offline. It is a module
// of its own, so that neither Helm nor Kubernetes gets into what Agora is built of.
package check
