"""Nodes that others call: an agent that does what it is asked for by the first word of a session, else says it back, and a toolbox."""

import collections
import json
import threading
from concurrent import futures

import aip_pb2 as pb
import aip_pb2_grpc as stubs
import grpc
from gateway import ANSWER, LAST, OPTIONS, START, STOP, text, text_of
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

SCHEMA = {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}

FOREVER = 1e9  # seconds: of a call without a deadline, as many are left


def fail(context, name, seconds, nanos=0):
    """Ends a call with a status, whose details say when to try again."""
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds, nanos=nanos)))
    code = grpc.StatusCode[name]
    context.abort_with_status(rpc_status.to_status(status_pb2.Status(code=code.value[0], message=f"it fails: {name}", details=[detail])))


class Node:
    """A server, which registers with gateways by what it is."""

    def __init__(self, id, domain):
        self.id, self.domain = id, domain
        self.server = grpc.server(futures.ThreadPoolExecutor(64), options=OPTIONS)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.over = threading.Event()

    def start(self):
        self.server.start()
        return self

    def beat(self, gateway):
        """Gives signs of life from now on."""

        def beats():
            while not self.over.wait(10):
                try:
                    gateway.ask("Heartbeat", pb.HeartbeatRequest(sender_id=self.id), timeout=5)
                except grpc.RpcError:
                    pass  # the next one tells

        threading.Thread(target=beats, daemon=True).start()

    def close(self):
        self.over.set()
        self.server.stop(None).wait()


class Agent(Node, stubs.AgentServiceServicer):
    def __init__(self, id, domain):
        super().__init__(id, domain)
        self.cancelled = collections.defaultdict(threading.Event)
        stubs.add_AgentServiceServicer_to_server(self, self.server)

    @property
    def info(self):
        return pb.AgentInfo(
            agent_id=self.id,
            address=self.address,
            name="An agent in Python",
            domain=self.domain,
            input_mode=[pb.TEXT, pb.IMAGE],
            output_mode=[pb.TEXT],
            description="says it back",
            skills=[pb.AgentInfo.AgentSkill(skill_id="echo", capability="says it back")],
            version="1.0",
        )

    def CallAgent(self, request_iterator, context):
        for m in request_iterator:

            def reply(status, content, to=m):
                return pb.AgentMessage(
                    sender_id=to.receiver_id,
                    receiver_id=to.sender_id,
                    session_id=to.session_id,
                    session_status=status,
                    task_info=to.task_info if to.HasField("task_info") else None,
                    reply_to_message_id=to.message_id,
                    content=content,
                )

            does, _, what = text_of(m).partition(" ") if m.session_status == START else ("", "", "")
            if does == "hang":
                over = self.cancelled[m.session_id]
                if not context.add_callback(over.set):
                    over.set()  # it has ended already
                yield reply(ANSWER, [text(f"hanging, timed {str((context.time_remaining() or FOREVER) < FOREVER).lower()}")])
                over.wait()  # unless it has ended by now: then nothing behind an answer is done
                return
            if does == "answer":
                yield reply(ANSWER, [text("so far")])
            if does in ("answer", "fail"):
                fail(context, what, 1, 500000000)
            if does == "count":
                yield from (reply(ANSWER, [text(str(i))]) for i in range(int(what)))
                continue
            if m.session_status == STOP:
                yield reply(LAST, m.content)
                return
            yield reply(ANSWER, m.content)


class Toolbox(Node, stubs.ToolServiceServicer):
    def __init__(self, id, domain, agent):
        super().__init__(id, domain)
        self.agent = agent
        stubs.add_ToolServiceServicer_to_server(self, self.server)

    @property
    def info(self):
        names = ["echo", "bytes", "fail", "wrong", "hang", "cancelled"]
        tools = [pb.ToolInfo(name="add", description="adds two numbers", arguments=json.dumps(SCHEMA), version="1")]
        tools += [pb.ToolInfo(name=name, arguments="anything", version="1") for name in names]
        return pb.ToolBoxInfo(toolbox_id=self.id, address=self.address, name="A toolbox in Python", domain=self.domain, description="adds, and more", tools=tools)

    def CallTool(self, request, context):
        response = pb.ToolResponse(sender_id=request.receiver_id, receiver_id=request.sender_id, session_id=request.session_id)
        if request.tool_name == "echo":
            response.content.add(text=request.arguments)
            return response
        arguments = json.loads(request.arguments)
        if request.tool_name == "add":
            response.content.add(text=str(arguments["a"] + arguments["b"]))
        elif request.tool_name == "bytes":
            response.content.add(image=bytes(range(arguments["n"])))
        elif request.tool_name == "fail":
            fail(context, arguments["code"], 2)
        elif request.tool_name == "wrong":
            response.is_error, response.error_message = True, "it is wrong"
        elif request.tool_name == "hang":
            over = threading.Event()
            if context.add_callback(over.set):
                over.wait()
        elif request.tool_name == "cancelled":
            self.agent.cancelled[arguments["session"]].wait()
            response.content.add(text="cancelled")
        else:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no tool {request.tool_name}")
        return response


class Served:
    """An agent and a toolbox, registered with two gateways until stop is called."""

    def __init__(self, gateways, tag, domain):
        self.gateways = gateways
        self.agent = Agent(f"agent-{tag}", domain).start()
        self.toolbox = Toolbox(f"toolbox-{tag}", domain, self.agent).start()
        for g in gateways:
            g.ready()
        gateways[0].ask("RegisterAgent", self.agent.info, timeout=5)
        gateways[1].ask("RegisterTool", self.toolbox.info, timeout=5)
        self.agent.beat(gateways[1])
        self.toolbox.beat(gateways[2])

    def stop(self):
        for node in (self.agent, self.toolbox):
            self.gateways[2].ask("DeregisterNode", pb.DeregisterNodeRequest(node_id=node.id))
            node.close()
