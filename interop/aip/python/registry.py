"""What nodes say of themselves, and hear of each other, at different edges."""

import aip_pb2 as pb
import grpc
from expect import Working, ended, equal, refused, until
from gateway import START, bare, text, token
from nodes import Agent, Served, Toolbox


def refusals(gateway, agent, toolbox):
    """Tries what can't be registered."""
    other = Agent(f"other-{agent.id}", agent.domain).start()

    def as_agent(**more):
        info = other.info
        for name, value in more.items():
            setattr(info, name, value)
        return lambda: gateway.ask("RegisterAgent", info)

    def as_toolbox(**more):
        return lambda: gateway.ask("RegisterTool", pb.ToolBoxInfo(**{"toolbox_id": other.id, "address": other.address, **more}))

    refused(as_agent(agent_id=agent.id), "ALREADY_EXISTS", f"Agent [{agent.id}] already registered.")
    refused(as_toolbox(toolbox_id=agent.id), "ALREADY_EXISTS", f"Tool [{agent.id}] already registered.")
    refused(as_agent(address=toolbox.address), "ALREADY_EXISTS", f"Address [{toolbox.address}] already registered.")
    refused(as_toolbox(address=agent.address), "ALREADY_EXISTS", f"Address [{agent.address}] already registered.")
    refused(as_agent(agent_id=""), "INVALID_ARGUMENT")
    refused(as_agent(address="nowhere"), "INVALID_ARGUMENT")
    refused(as_agent(address="169.254.1.1:80"), "PERMISSION_DENIED")
    other.close()
    refused(as_agent(), "UNAVAILABLE")
    assert other.id not in gateway.nodes()


def register(gateways, tag, domain, **_):
    agent = Agent(f"agent-{tag}", domain).start()
    toolbox = Toolbox(f"toolbox-{tag}", domain, agent).start()
    answer = gateways[0].ask("RegisterAgent", agent.info, timeout=60)
    equal((answer.success, [bare(p) for p in answer.peers if bare(p) == agent.info]), (True, [agent.info]))
    equal(gateways[1].ask("RegisterTool", toolbox.info).success, True)
    for g in gateways:
        until("both are listed", lambda: len(g.nodes(domain)) == 2)
        equal(g.nodes(domain), {agent.id: agent.info, toolbox.id: toolbox.info})
        assert agent.id in g.nodes("") and agent.id not in g.nodes(f"no {domain}")
    refusals(gateways[2], agent, toolbox)
    for g in gateways:
        equal(g.ask("Heartbeat", pb.HeartbeatRequest(sender_id=agent.id)), pb.HeartbeatResponse(success=True, message="Heartbeat received"))
    unknown = gateways[0].ask("Heartbeat", pb.HeartbeatRequest(sender_id=f"no {tag}"))
    equal(unknown, pb.HeartbeatResponse(success=False, message=f"Node no {tag} not registered"))
    news = agent.info
    news.description, news.version = "says something else", "2.0"
    assert gateways[1].ask("UpdateNodeInfo", pb.UpdateNodeInfoRequest(node_info=pb.Peer(agent_info=news))).success
    until("the update is seen", lambda: gateways[2].nodes(domain)[agent.id] == news)
    for success in (True, False):
        equal(gateways[2].ask("DeregisterNode", pb.DeregisterNodeRequest(node_id=agent.id)).success, success)
    for g in gateways:
        until("it is listed no more", lambda: list(g.nodes(domain)) == [toolbox.id])
    gateways[0].ask("DeregisterNode", pb.DeregisterNodeRequest(node_id=toolbox.id))
    agent.close()
    toolbox.close()


def failing(gateways, tag, domain, **_):
    """An agent whose call ends with some statuses is a node no more."""
    of = {"FAILED_PRECONDITION": True, "RESOURCE_EXHAUSTED": True, "INTERNAL": False, "UNKNOWN": False, "UNAVAILABLE": False, "DATA_LOSS": False}
    for code, stays in of.items():
        served = Served(gateways, f"{tag}-{code}", domain)
        agent = served.agent.id
        call = gateways[1].call()
        call.say(pb.AgentMessage(sender_id="caller", receiver_id=agent, session_id="s", session_status=START, content=[text(f"fail {code}")]))
        ended(call.rest()[1], code, f"it fails: {code}")
        for g in gateways:
            until(f"{code} says of the node: {stays}", lambda: (agent in g.nodes(domain)) == stays)
        served.stop()


class Watching:
    """Subscribes, and keeps what it hears of a node."""

    def __init__(self, gateway, subscriber, node_ids, of):
        request = pb.UpdateSubscriptionRequest(subscriber_id=subscriber, node_ids=node_ids)
        self.stream = gateway.stub.SubscribeToUpdates(request, metadata=token())
        self.stream.initial_metadata()  # which come before anything has changed
        self.heard, self.of = [], of
        self.listening = Working(self.listen)

    def listen(self):
        try:
            for u in self.stream:
                if u.node_id == self.of:
                    self.heard.append((pb.NodeUpdate.UpdateType.Name(u.update_type), bare(u.peer) if u.HasField("peer") else None))
        except grpc.RpcError:
            pass  # the status of the stream says the same

    def over(self):
        self.listening.join(120)
        return self.stream


def updates(gateways, tag, domain, **_):
    agent = Agent(f"agent-{tag}", domain).start()
    every = Watching(gateways[2], f"all-{tag}", [], agent.id)
    some = Watching(gateways[1], f"some-{tag}", [agent.id, f"other-{tag}"], agent.id)
    others = Watching(gateways[1], f"others-{tag}", [f"other-{tag}"], agent.id)
    news = agent.info
    news.version = "2.0"

    def tells(many):  # before the next one: what a node was for a moment alone is not told
        until(f"change {many} is told", lambda: len(every.heard) >= many and len(some.heard) >= many)

    gateways[0].ask("RegisterAgent", agent.info)
    tells(1)
    gateways[1].ask("UpdateNodeInfo", pb.UpdateNodeInfoRequest(node_info=pb.Peer(agent_info=news)))
    tells(2)
    gateways[2].ask("DeregisterNode", pb.DeregisterNodeRequest(node_id=agent.id))
    tells(3)
    want = [("ADDED", agent.info), ("UPDATED", news), ("REMOVED", None)]
    equal((every.heard, some.heard, others.heard), (want, want, []))
    assert gateways[0].ask("Unsubscribe", pb.UnsubscribeRequest(subscriber_id=f"some-{tag}")).success
    ended(some.over(), "OK")
    for w in (every, others):
        w.stream.cancel()
        ended(w.over(), "CANCELLED")
    agent.close()


REGISTRY = {s.__name__: s for s in (register, failing, updates)}
