package main

import "encoding/json"

// What verbs print with --json, as whoever reads it finds it there.
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
	printedReceipt struct {
		Status   string
		Space    string
		StreamID string `json:"stream_id"`
	}
)
