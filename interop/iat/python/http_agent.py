"""An agent by http.client: it POSTs what it says, and has a downlink of server-sent events."""

import http.client
import json
import socket
import threading
import urllib.parse

from agent import PATIENCE, Agent, Refusal


def events(answer):
    """Reads server-sent events: (fields, data)."""
    fields, data = {}, []
    for line in answer:
        line = line.decode().rstrip("\r\n")
        if not line:
            if data:
                yield fields, "\n".join(data)
            fields, data = {}, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field:  # else a comment
            fields[field] = value


class HTTPAgent(Agent):
    def open(self, say=None, hear=None, last=None):
        """Has the agent say at one edge, and hear at another one if it is named."""
        self.edge = hear if say is None else say
        if hear is not None:
            self.listen(hear, last)

    def connect(self, edge):
        at = urllib.parse.urlsplit(self.edges[edge])
        kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        return kind(at.hostname, at.port, timeout=PATIENCE)

    def listen(self, edge, last):
        self.line = self.connect(edge)
        self.line.connect()
        self.socket = self.line.sock  # which http.client lets go of
        self.line.request("GET", f"/a2a/events?agent={self.id}", headers={"Last-Event-ID": last} if last else {})
        answer = self.line.getresponse()
        if answer.status != 200:
            raise Refusal(answer.status, json.load(answer))
        self.hearing = threading.Thread(target=self.hear, args=[answer])
        self.hearing.start()

    def hear(self, answer):
        try:
            for fields, data in events(answer):
                if "event" not in fields:
                    self.heard(fields["id"], data)
        except (OSError, ValueError, http.client.HTTPException):
            pass  # it was cut

    def post(self, body, headers=None, method="POST", path="/a2a", edge=None):
        """POSTs an envelope, or what is to be one, and returns the answer, which is to be read to its end."""
        line = self.connect(self.edge if edge is None else edge)
        line.request(method, path, body.encode(), {"Content-Type": "application/json"} if headers is None else headers)
        answer = line.getresponse()
        if answer.status >= 400:
            with answer:
                envelope = json.load(answer)
            line.close()
            raise Refusal(answer.status, envelope)
        return line, answer

    def read(self, line, answer):
        with answer:
            body = answer.read()
        line.close()
        return body

    def say(self, envelope):
        """Returns when the envelope is stored."""
        line, answer = self.post(envelope.text)
        assert (answer.status, self.read(line, answer)) == (202, b""), answer.status

    def ask(self, envelope):
        """Returns the chunks of an answer, and then the response."""
        line, answer = self.post(envelope.text, {"Content-Type": "application/json", "Accept": "text/event-stream"})
        with answer:
            for _, data in events(answer):
                part = json.loads(data)
                if "error" in part["payload"]:
                    raise Refusal(None, part)
                yield part
        line.close()

    def answer(self, envelope):
        """Asks for the response alone."""
        return json.loads(self.read(*self.post(envelope.text)))

    def cut(self):
        if hasattr(self, "hearing"):
            self.socket.shutdown(socket.SHUT_RDWR)
            self.hearing.join()
            self.line.close()
