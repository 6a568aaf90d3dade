"""Agents and a toolbox in the style of the protocol's own library for Python: one loop, a queue for each way of each session, and clients that are created before
anything is said. What they do is as in its document; the session's rules are theirs to keep."""

import asyncio
import json
import uuid

import aip_pb2 as pb
import aip_pb2_grpc as stubs
import grpc
from expect import equal
from gateway import ANSWER, HOLD, LAST, OPTIONS, START, STOP, channel_to, text, text_of, token


class AgentClient:
    """One session that this agent has begun: its stream is open, and stays so until the other one has said the last word."""

    def __init__(self, gateway):
        self.gateway, self.session_id, self.occupied = gateway, f"session_{uuid.uuid4().hex[:8]}", False
        self.requests = asyncio.Queue()

    async def start(self):
        self.channel = channel_to(self.gateway, grpc.aio)
        await self.channel.channel_ready()
        self.stream = stubs.GatewayServiceStub(self.channel).RouteAgentCalling(self.iterate(), metadata=token())
        return self.session_id

    async def iterate(self):
        while (request := await self.requests.get()) is not None:
            yield request

    async def receive(self):
        response = await self.stream.read()
        if response.session_status == LAST:
            self.occupied = False
            equal(await self.stream.read(), grpc.aio.EOF)  # though there may be more requests
            equal(await self.stream.code(), grpc.StatusCode.OK)
        return response

    async def close(self):
        await self.requests.put(None)
        await self.channel.close()


class Node:
    def __init__(self, id, domain):
        self.id, self.domain = id, domain
        self.server = grpc.aio.server(options=OPTIONS)
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"

    async def start(self):
        await self.server.start()
        return self

    async def register_to_gateway(self, gateway_address, timeout=5.0):
        self.gateway_address = gateway_address
        self.channel = channel_to(gateway_address, grpc.aio)
        await asyncio.wait_for(self.channel.channel_ready(), timeout)
        self.gateway = stubs.GatewayServiceStub(self.channel)
        self.known = await self.register(timeout)
        self.beating = asyncio.create_task(self.heartbeat())
        return self

    async def heartbeat(self):
        while True:
            equal((await self.gateway.Heartbeat(pb.HeartbeatRequest(sender_id=self.id), metadata=token())).success, True)
            await asyncio.sleep(10)

    async def stop(self):
        self.beating.cancel()
        await self.gateway.DeregisterNode(pb.DeregisterNodeRequest(node_id=self.id), metadata=token())
        await self.channel.close()
        await self.server.stop(0)


class Agent(Node, stubs.AgentServiceServicer):
    def __init__(self, id, domain):
        super().__init__(id, domain)
        self.inquiries, self.feedback, self.clients = asyncio.Queue(), {}, {}
        stubs.add_AgentServiceServicer_to_server(self, self.server)

    async def register(self, timeout):
        info = pb.AgentInfo(agent_id=self.id, address=self.address, name=self.id, domain=self.domain, input_mode=[pb.TEXT], output_mode=[pb.TEXT])
        response = await self.gateway.RegisterAgent(info, timeout=timeout, metadata=token())
        return {p.agent_info.agent_id or p.toolbox_info.toolbox_id for p in response.peers}

    async def update_peers(self, domain="default"):
        response = await self.gateway.GetNodes(pb.GetNodesRequest(agent_id=self.id, domain=domain), metadata=token())
        self.known = {p.agent_info.agent_id or p.toolbox_info.toolbox_id for p in response.peers}

    async def CallAgent(self, request_iterator, context):
        answers = asyncio.Queue()

        async def listen():
            async for request in request_iterator:
                self.feedback[request.session_id] = answers
                await self.inquiries.put(request)

        listening = asyncio.create_task(listen())
        while True:
            answer = await answers.get()
            yield answer
            if answer.session_status == LAST:
                listening.cancel()
                return

    async def receive_inquiry(self):
        return await self.inquiries.get()

    async def submit_feedback(self, request, status, *content):
        message = pb.AgentMessage(sender_id=self.id, receiver_id=request.sender_id, session_id=request.session_id, session_status=status, content=content)
        await self.feedback[request.session_id].put(message)

    async def create_agent_client(self, receiver_id):
        client = AgentClient(self.gateway_address)
        self.clients[receiver_id] = client
        return await client.start()

    async def submit_inquiry(self, receiver_id, *content, session_status=None):
        client = self.clients[receiver_id]
        status = session_status if session_status is not None else HOLD if client.occupied else START
        client.occupied = True
        message = pb.AgentMessage(sender_id=self.id, receiver_id=receiver_id, session_id=client.session_id, session_status=status, content=content)
        message.message_id, message.task_info.task_id = f"msg_{uuid.uuid4().hex[:8]}", f"task_{self.id}"
        await client.requests.put(message)

    async def receive_feedback(self, receiver_id):
        return await self.clients[receiver_id].receive()

    async def close_agent_client(self, receiver_id):
        await self.clients.pop(receiver_id).close()

    async def call_tool(self, toolbox_id, tool_name, arguments):
        request = pb.ToolRequest(sender_id=self.id, receiver_id=toolbox_id, session_id="t", tool_name=tool_name, arguments=json.dumps(arguments))
        return await self.gateway.RouteToolCalling(request, metadata=token())


class Toolbox(Node, stubs.ToolServiceServicer):
    def __init__(self, id, domain, **functions):
        super().__init__(id, domain)
        self.functions = functions
        stubs.add_ToolServiceServicer_to_server(self, self.server)

    async def register(self, timeout):
        tools = [pb.ToolInfo(name=name, description=f.__doc__, arguments=str({"numbers": "list"}), version="1") for name, f in self.functions.items()]
        info = pb.ToolBoxInfo(toolbox_id=self.id, address=self.address, name=self.id, domain=self.domain, tools=tools)
        return (await self.gateway.RegisterTool(info, timeout=timeout, metadata=token())).success

    async def CallTool(self, request, context):
        result = self.functions[request.tool_name](**json.loads(request.arguments))
        return pb.ToolResponse(sender_id=self.id, receiver_id=request.sender_id, session_id=request.session_id, content=[text(str(result))])


async def serve(bob, box):
    """Answers inquiries, the last of a session by what the toolbox has counted."""
    heard = []
    while True:
        request = await bob.receive_inquiry()
        if request.session_status == STOP:
            total = await bob.call_tool(box, "total", {"numbers": heard})
            await bob.submit_feedback(request, LAST, *total.content)
            heard = []
            continue
        heard.append(int(text_of(request)))
        await bob.submit_feedback(request, ANSWER, text(f"I heard {heard[-1]}"))


def total(numbers):
    """adds numbers"""
    return sum(numbers)


async def play(edges, tag, domain):
    al, bob, box = Agent(f"al-{tag}", domain), Agent(f"bob-{tag}", domain), Toolbox(f"box-{tag}", domain, total=total)
    for node, edge in zip((box, bob, al), edges):
        await (await node.start()).register_to_gateway(edge)
    await al.update_peers(domain)
    equal(al.known, {al.id, bob.id, box.id})
    serving = asyncio.create_task(serve(bob, box.id))
    for first in (1, 10):
        await al.create_agent_client(bob.id)
        for number in (first, first + 1):
            await al.submit_inquiry(bob.id, text(str(number)))
            equal(text_of(await al.receive_feedback(bob.id)), f"I heard {number}")
        await al.submit_inquiry(bob.id, session_status=STOP)
        equal(text_of(await al.receive_feedback(bob.id)), str(2 * first + 1))
        await al.close_agent_client(bob.id)
    serving.cancel()
    for node in (al, bob, box):
        await node.stop()


def library(gateways, tag, domain, **_):
    asyncio.run(play([g.address for g in gateways], tag, domain))
