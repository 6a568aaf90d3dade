"""A gateway, and content, as programs have them whose stubs are generated from the proto."""

import os
import queue

import aip_pb2 as pb
import aip_pb2_grpc as stubs
import grpc

# Messages may be as large as a gateway takes them: the library's own bound is 4 MiB.
OPTIONS = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", -1)]

START, HOLD, STOP = pb.AgentMessage.START_QUEST, pb.AgentMessage.HOLD_QUEST, pb.AgentMessage.STOP_QUEST
ANSWER, LAST = pb.AgentMessage.HOLD_RESPONSE, pb.AgentMessage.STOP_RESPONSE


def channel_to(address, module=grpc):
    if os.environ.get("AIP_TLS"):
        return module.secure_channel(address, grpc.ssl_channel_credentials(), OPTIONS)
    return module.insecure_channel(address, OPTIONS)


def token():
    if t := os.environ.get("AIP_TOKEN"):
        return [("authorization", f"Bearer {t}")]
    return []


class Gateway:
    def __init__(self, address):
        self.address = address
        self.channel = channel_to(address)
        self.stub = stubs.GatewayServiceStub(self.channel)

    def ready(self, seconds=5):
        """Waits until the gateway is connected to."""
        grpc.channel_ready_future(self.channel).result(timeout=seconds)

    def ask(self, method, request, timeout=None):
        return getattr(self.stub, method)(request, timeout=timeout, metadata=token())

    def call(self, timeout=None):
        return Call(self.stub, timeout)

    def nodes(self, domain="default"):
        """Returns the nodes of a domain by their ids."""
        peers = self.ask("GetNodes", pb.GetNodesRequest(agent_id="anyone", domain=domain)).peers
        return {bare(p).agent_id if p.HasField("agent_info") else bare(p).toolbox_id: bare(p) for p in peers}

    def tool(self, toolbox, name, arguments, session="s", timeout=None):
        request = pb.ToolRequest(sender_id="caller", receiver_id=toolbox, session_id=session, tool_name=name, arguments=arguments)
        return self.ask("RouteToolCalling", request, timeout)

    def close(self):
        self.channel.close()


def bare(peer):
    """Returns what a peer has registered with."""
    return getattr(peer, peer.WhichOneof("info_type"))


class Call:
    """One call of a session, as its caller has it: the iterator of its requests stays open, until it says that nothing more comes."""

    def __init__(self, stub, timeout):
        self.said = queue.SimpleQueue()
        self.answers = stub.RouteAgentCalling(iter(self.said.get, None), timeout=timeout, metadata=token())

    def say(self, message):
        self.said.put(message)

    def half_close(self):
        self.said.put(None)

    def next(self):
        return next(self.answers)

    def rest(self):
        """Returns the answers that are left, and the call, which is the status behind them."""
        every = []
        try:
            for answer in self.answers:
                every.append(answer)
        except grpc.RpcError:
            pass  # the status says the same
        finally:
            self.half_close()
        return every, self.answers

    def cancel(self):
        self.answers.cancel()


def text(s):
    return pb.ContentItem(text=s)


def text_of(message):
    return "".join(c.text for c in message.content)
