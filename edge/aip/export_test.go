package aip

import "google.golang.org/grpc"

// Services returns what the door offers, by the names of services.
func (d *Door) Services() map[string]grpc.ServiceInfo { return d.server.GetServiceInfo() }
