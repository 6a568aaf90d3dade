"""An agent of the IAT dialect, whatever it is connected by: what it hears waits in a queue, and what it says has ids of its own."""

import json
import queue
import time
import urllib.error
import urllib.request

PATIENCE = 60  # seconds that anything may take


class Refusal(Exception):
    """What an edge answers to what it does not take: an envelope, over HTTP with a status."""

    def __init__(self, status, envelope):
        error = envelope["payload"]["error"]
        super().__init__(f"{status} {error}")
        self.status, self.envelope, self.code, self.path = status, envelope, error["code"], error.get("path")


def until(what, holds):
    """Waits until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.02)


def http(url, body=None):
    """Returns the status and the JSON of what a URL answers, by urllib."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {} if data is None else {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, json.load(answer)


class Envelope:
    """An envelope as its sender has spelled it."""

    def __init__(self, msg_id, text):
        self.id, self.text = msg_id, text


class Agent:
    def __init__(self, name, edges):
        self.id, self.edges = name, edges
        self.inbox, self.said = queue.Queue(), 0

    def envelope(self, kind, to, payload, parent=None, metadata=None):
        """Returns an envelope that the agent has not said yet. A payload that is a string goes as it is spelled."""
        self.said += 1
        header = {"msg_id": f"{self.id}-{self.said}", "parent_id": parent, "type": kind, "from": self.id, "to": to}
        text = '{"header":' + json.dumps({k: v for k, v in header.items() if v is not None})
        if metadata is not None:
            text += ',"metadata":' + json.dumps(metadata)
        text += ',"payload":' + (payload if isinstance(payload, str) else json.dumps(payload)) + "}"
        return Envelope(header["msg_id"], text)

    def heard(self, seq, raw):
        self.inbox.put({"seq": seq, "raw": raw, **json.loads(raw)})

    def next(self):
        """Returns what was heard next."""
        return self.inbox.get(timeout=PATIENCE)

    def notify(self, to, payload, **more):
        self.say(self.envelope("notification", to, payload, **more))

    def chunk(self, request, text):
        header = request["header"]
        self.say(self.envelope("chunk", header["from"], {"text": text}, parent=header["msg_id"]))

    def respond(self, request, payload):
        header = request["header"]
        self.say(self.envelope("response", header["from"], payload, parent=header["msg_id"]))

    def answer(self, envelope):
        """Asks, and returns the response."""
        return list(self.ask(envelope))[-1]

    def register(self, tools):
        return self.answer(self.envelope("request", None, {"action": "register", "agent": self.id, "tools": tools}))
