package main

import "encoding/json"

// What verbs print with --json, as the one who reads it finds it there.
type (
	printedAgent struct {
		ID       string
		Type     string
		Status   string
		Endpoint string
		Skills   []struct{ Name string }
	}
	printedMessage struct {
		Type      string
		From      string
		StreamID  string `json:"stream_id"`
		RequestID string `json:"request_id"`
		Payload   json.RawMessage
	}
	printedIdle struct {
		Agents int
		Lost   int64 `json:"lost_connections"`
		Server *struct {
			Before     int64   `json:"rss_bytes_before"`
			After      int64   `json:"rss_bytes"`
			Per        float64 `json:"rss_bytes_per_connection"`
			HeapBefore int64   `json:"heap_bytes_before"`
			HeapAfter  int64   `json:"heap_bytes"`
			HeapPer    float64 `json:"heap_bytes_per_connection"`
			ConnectCPU float64 `json:"connect_cpu_us"`
		}
	}
	printedReceipt struct {
		Status   string
		Space    string
		StreamID string `json:"stream_id"`
	}
)
