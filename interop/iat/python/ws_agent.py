"""An agent by the library websockets, which says and hears by one WebSocket. It has a receipt of what it says."""

import json
import queue
import socket
import threading

import websockets.exceptions
import websockets.sync.client

from agent import PATIENCE, Agent, Refusal

# What names an envelope in parent_id and is said of it; others belong to it alone, such as a call of a tool in its name.
ANSWERS = ("response", "chunk")


class SocketAgent(Agent):
    def open(self, say=None, hear=None, last=None):
        edge = say if hear is None else hear
        at = self.edges[edge].replace("http", "ws", 1) + f"/a2a/ws?agent={self.id}&receipts=stored"
        self.answers = {}  # by the id of the envelope: what is said of it
        self.socket = websockets.sync.client.connect(at + (f"&last_seq={last}" if last else ""), max_size=None)
        self.hearing = threading.Thread(target=self.hear)
        self.hearing.start()

    def hear(self):
        try:
            for raw in self.socket:
                e = json.loads(raw)
                answers = self.answers.get(e["header"].get("parent_id"))
                if answers and (e["header"]["type"] in ANSWERS or e["payload"].get("action") == "receipt"):
                    answers.put(e)
                else:
                    self.heard(e.get("seq"), raw)
        except websockets.exceptions.ConnectionClosed:
            pass

    def send(self, envelope):
        """Sends an envelope, and returns the queue of what is said of it."""
        answers = self.answers[envelope.id] = queue.Queue()
        self.socket.send(envelope.text)
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
        self.socket.send(text)
        return self.next()

    def cut(self):
        self.socket.socket.shutdown(socket.SHUT_RDWR)
        self.hearing.join()
        self.socket.close()
