"""Plays the steps of the IAT door by clients of Python: client.py http|ws EDGE EDGE. It prints "ok STEP" for each.

http is http.client of the standard library, ws is the library websockets.
"""

import http.client
import json
import sys
import threading
import traceback
from urllib.parse import urlsplit

kind, near, far = sys.argv[1:]
al, bob = f"al-python-{kind}", f"bob-python-{kind}"
EVENTS = "text/event-stream"


def ok(step):
    print("ok", step, flush=True)


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def envelope(type, id, sender, to, payload, parent=None):
    header = {"msg_id": id, "type": type, "from": sender, "to": to}
    if parent:
        header["parent_id"] = parent
    return {"header": header, "payload": payload}


def log(id):
    return envelope("notification", id, al, bob, {"action": "log", "level": "info", "message": f"hello {id} é"})


task = envelope("request", "r1", al, bob, {"action": "execute", "query": "count"})
answers = [
    envelope("chunk", "c1", bob, al, {"text": "one "}, "r1"),
    envelope("chunk", "c2", bob, al, {"text": "two"}, "r1"),
    envelope("response", "c3", bob, al, {"status": "success"}, "r1"),
]
nonsense = envelope("nonsense", "x1", al, bob, {})


def same(got, want):
    """Asserts that an envelope is what was said, whatever the edge has added to metadata."""
    equal({"header": got["header"], "payload": got["payload"]}, want)


def refuses(got):
    """Asserts that an envelope says what is wrong with the nonsense."""
    header, error = got["header"], got["payload"]["error"]
    equal([header.get(k) for k in ("parent_id", "type", "from", "to")], ["x1", "response", "agora", al])
    equal((error["code"], error["path"]), ("INVALID_REQUEST", "/header/type"))


def events(answer):
    """Yields (id, envelope) of each server-sent event. Comments are left out."""
    fields = {}
    for line in answer:
        line = line.decode().rstrip("\n")
        name, colon, value = line.partition(": ")
        if colon and name:
            fields[name] = value
        elif not line:
            if "data" in fields:
                yield fields.get("id"), json.loads(fields["data"])
            fields = {}


def ask(edge, method, path, body=None, **headers):
    """Sends a request on a connection of its own, and returns that and the answer, of which the head has come."""
    connection = http.client.HTTPConnection(urlsplit(edge).netloc)
    connection.request(method, path, body and json.dumps(body).encode(), headers)
    return connection, connection.getresponse()


def post(edge, said):
    connection, answer = ask(edge, "POST", "/a2a", said, **{"Content-Type": "application/json"})
    body = answer.read()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def taken(edge, said):
    equal(post(edge, said), (202, None, b""))


class Downlink:
    """The downlink of an agent."""

    def __init__(self, edge, agent, last=None, token=None):
        path = f"/a2a/events?agent={agent}" + (f"&resume_token={token}" if token else "")
        headers = {"Accept": EVENTS, **({"Last-Event-ID": last} if last else {})}
        self.connection, self.answer = ask(edge, "GET", path, **headers)
        equal((self.answer.status, self.answer.headers["Content-Type"]), (200, EVENTS))
        self.token, self.events = self.answer.headers["Agora-Resume-Token"], events(self.answer)

    def next(self):
        return next(self.events)

    def close(self):
        self.answer.close()
        self.connection.close()


def over_http():
    down = Downlink(far, bob)
    taken(near, log("n1"))
    last, got = down.next()
    equal(last.isdigit() and int(last) > 0, True)
    equal(got, log("n1"))
    ok("notification")

    answer = []

    def wait():
        connection, got = ask(near, "POST", "/a2a", task, **{"Content-Type": "application/json", "Accept": EVENTS})
        answer.extend([got.status, got.headers["Content-Type"], [e for _, e in events(got)]])
        connection.close()

    asking = threading.Thread(target=wait, daemon=True)
    asking.start()
    last, got = down.next()
    same(got, task)
    for a in answers:
        taken(far, a)
    asking.join()
    equal(answer[:2], [200, EVENTS])
    equal(len(answer[2]), len(answers))
    for got, want in zip(answer[2], answers):
        same(got, want)
    ok("request")

    down.close()
    for id in ("n2", "n3"):
        taken(far, log(id))
    down = Downlink(near, bob, last, down.token)
    for id in ("n2", "n3"):
        after, got = down.next()
        same(got, log(id))
        equal(int(after) > int(last), True)
        last = after
    down.close()
    ok("resume")

    status, type, body = post(near, nonsense)
    equal((status, type), (400, "application/json"))
    refuses(json.loads(body))
    ok("refusal")


def over_websocket():
    from websockets.sync.client import connect

    def socket(edge, agent, more=""):
        return connect(f"{edge.replace('http', 'ws')}/a2a/ws?agent={agent}{more}")

    def say(to, said):
        to.send(json.dumps(said))

    def hear(at):
        return json.loads(at.recv())

    host, sub = socket(near, al), socket(far, bob)
    say(host, log("n1"))
    same(hear(sub), log("n1"))
    ok("notification")

    say(host, task)
    got = hear(sub)
    same(got, task)
    for a in answers:
        say(sub, a)
    for a in answers:
        same(hear(host), a)
    ok("request")

    last, token = got["seq"], sub.response.headers["Agora-Resume-Token"]
    equal(isinstance(last, int) and last > 0, True)
    sub.close(4000)
    for id in ("n2", "n3"):
        say(host, log(id))
    sub = socket(near, bob, f"&last_seq={last}&resume_token={token}")
    for id in ("n2", "n3"):
        same(hear(sub), log(id))
    ok("resume")

    say(host, nonsense)
    refuses(hear(host))
    ok("refusal")
    host.close()
    sub.close()


try:
    {"http": over_http, "ws": over_websocket}[kind]()
except Exception:
    print(f"{kind}: {traceback.format_exc()}", file=sys.stderr)
    sys.exit(1)
