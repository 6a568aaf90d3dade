module github.com/agora-relay/agora/bench

go 1.26.8

require (
	github.com/agora-relay/agora v0.0.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260928230214-8a89bd6388cc // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/agora-relay/agora => ../
