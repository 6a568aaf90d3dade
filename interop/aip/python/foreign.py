"""A gateway that is not Agora's, with an agent and a toolbox: whoever wants to know of them has to ask."""

import sys
from concurrent import futures

import aip_pb2 as pb
import aip_pb2_grpc as stubs
import grpc
from gateway import OPTIONS
from nodes import FOREVER, Agent, Toolbox


class Foreign(stubs.GatewayServiceServicer):
    def __init__(self, agent, toolbox):
        self.peers = [pb.Peer(agent_info=agent.info), pb.Peer(toolbox_info=toolbox.info)]
        self.agent = stubs.AgentServiceStub(grpc.insecure_channel(agent.address, OPTIONS))
        self.toolbox = stubs.ToolServiceStub(grpc.insecure_channel(toolbox.address, OPTIONS))

    def GetNodes(self, request, context):
        return pb.GetNodesResponse(peers=self.peers)

    def RouteToolCalling(self, request, context):
        try:
            return self.toolbox.CallTool(request)
        except grpc.RpcError as status:
            context.abort(status.code(), status.details())

    def RouteAgentCalling(self, request_iterator, context):
        left = context.time_remaining()
        call = self.agent.CallAgent(request_iterator, timeout=left if left and left < FOREVER else None)
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as status:
            context.abort(status.code(), status.details())


def gateway(tag):
    agent = Agent(f"agent-{tag}", "far").start()
    toolbox = Toolbox(f"toolbox-{tag}", "far", agent).start()
    server = grpc.server(futures.ThreadPoolExecutor(64), options=OPTIONS)
    stubs.add_GatewayServiceServicer_to_server(Foreign(agent, toolbox), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"ready 127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    server.stop(None).wait()
    agent.close()
    toolbox.close()
