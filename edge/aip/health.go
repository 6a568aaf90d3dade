package aip

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/wire/aip"
)

// health says whether new nodes and calls should come to this edge: grpc.health.v1, for the server as a whole and for
// the gateway's service.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	*shared
}

// now returns the status of a service; false where there is no such service.
func (h *health) now(service string) (grpc_health_v1.HealthCheckResponse_ServingStatus, bool) {
	if service != "" && service != aip.GatewayService_ServiceDesc.ServiceName {
		return grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN, false
	}
	if h.cfg.Ready() != nil {
		return grpc_health_v1.HealthCheckResponse_NOT_SERVING, true
	}
	return grpc_health_v1.HealthCheckResponse_SERVING, true
}

// Check implements grpc.health.v1.
func (h *health) Check(_ context.Context, in *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	s, ok := h.now(in.GetService())
	if !ok {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: s}, nil
}

// Watch implements grpc.health.v1. It ends when the edge drains, which says that the edge does not serve.
func (h *health) Watch(in *grpc_health_v1.HealthCheckRequest, out grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for last := grpc_health_v1.HealthCheckResponse_UNKNOWN; ; {
		if s, _ := h.now(in.GetService()); s != last {
			if err := out.Send(&grpc_health_v1.HealthCheckResponse{Status: s}); err != nil {
				return err
			}
			last = s
		}
		select {
		case <-every.C:
		case <-out.Context().Done():
			return status.FromContextError(out.Context().Err()).Err()
		case <-h.drains:
			if err := out.Send(&grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, errGone.Message)
		}
	}
}
