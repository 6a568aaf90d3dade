"""An agent by the library websockets, which says and hears by one WebSocket. It has a receipt of what it says.

The socket is one of asyncio, in a thread of its own: websockets.sync reads and writes a TLS connection in two threads at once, which the ssl module of
older versions of Python can't, and so a handshake in some hundreds is lost, whatever the server."""

import asyncio
import json
import queue
import threading

import websockets.asyncio.client
import websockets.exceptions

from agent import PATIENCE, Agent, Refusal

# What names an envelope in parent_id and is said of it; others belong to it alone, such as a call of a tool in its name.
ANSWERS = ("response", "chunk")


class SocketAgent(Agent):
    def open(self, say=None, hear=None, last=None):
        edge = say if hear is None else hear
        at = self.edges[edge].replace("http", "ws", 1) + f"/a2a/ws?agent={self.id}&receipts=stored"
        self.answers = {}  # by the id of the envelope: what is said of it
        self.loop, self.opened = asyncio.new_event_loop(), queue.Queue()
        self.hearing = threading.Thread(target=self.loop.run_until_complete, args=[self.hear(at + (f"&last_seq={last}" if last else ""))])
        self.hearing.start()
        if isinstance(fault := self.opened.get(timeout=PATIENCE), Exception):
            raise fault

    async def hear(self, at):
        try:
            self.socket = await websockets.asyncio.client.connect(at, max_size=None)
        except Exception as fault:
            self.opened.put(fault)
            return
        self.opened.put(None)
        try:
            async for raw in self.socket:
                e = json.loads(raw)
                answers = self.answers.get(e["header"].get("parent_id"))
                if answers and (e["header"]["type"] in ANSWERS or e["payload"].get("action") == "receipt"):
                    answers.put(e)
                else:
                    self.heard(e.get("seq"), raw)
        except websockets.exceptions.ConnectionClosed:
            pass

    def write(self, text):
        asyncio.run_coroutine_threadsafe(self.socket.send(text), self.loop).result(PATIENCE)

    def send(self, envelope):
        """Sends an envelope, and returns the queue of what is said of it."""
        answers = self.answers[envelope.id] = queue.Queue()
        self.write(envelope.text)
        return answers

    def say(self, envelope):
        e = self.send(envelope).get(timeout=PATIENCE)
        del self.answers[envelope.id]
        if "error" in e["payload"]:
            raise Refusal(None, e)
        assert e["payload"]["action"] == "receipt", e

    def ask(self, envelope):
        answers = self.send(envelope)
        while True:
            e = answers.get(timeout=PATIENCE)
            if e["payload"].get("action") == "receipt":
                continue
            if "error" in e["payload"]:
                raise Refusal(None, e)
            yield e
            if e["header"]["type"] == "response":
                break
        del self.answers[envelope.id]

    def raw(self, text):
        """Sends what may be no envelope, and returns what comes of it."""
        self.answers.clear()
        self.write(text)
        return self.next()

    def cut(self):
        if self.hearing.is_alive():
            self.loop.call_soon_threadsafe(self.socket.transport.abort)
        self.hearing.join()
