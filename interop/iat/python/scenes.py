"""What an agent of any connection can do, each by agents of its own at different edges. Names end in the tag of the run."""

import json
import threading

from agent import Refusal, http, until

ADD = {
    "name": "add",
    "description": "adds two numbers",
    "input_schema": {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
}


class Working(threading.Thread):
    """Does something beside, whose result or exception join returns."""

    def __init__(self, do):
        super().__init__()
        self.do, self.result, self.fault = do, None, None
        self.start()

    def run(self):
        try:
            self.result = self.do()
        except BaseException as fault:
            self.fault = fault

    def join(self, timeout=None):
        super().join(timeout)
        if self.fault:
            raise self.fault
        return self.result


def equal(got, want):
    assert got == want, f"{got!r} is not {want!r}"


def refused(do, status, code, path=None):
    """Wants what is done to be refused, by a response of the cluster."""
    try:
        got = do()
    except Refusal as refusal:
        equal((refusal.code, refusal.path if path else None), (code, path))
        if refusal.status is not None:
            equal(refusal.status, status)
        equal((refusal.envelope["header"]["type"], refusal.envelope["header"]["from"]), ("response", "agora"))
        return
    raise AssertionError(f"{got!r} instead of {code}")


def call(agent, to, tool, arguments, **more):
    payload = {"action": "call_tool", "tool_name": tool, "arguments": arguments}
    return agent.answer(agent.envelope("request", to, payload, **more))


def register(enter, edges):
    bob = enter("bob", hear=0)
    answer = bob.register([ADD])
    equal((answer["header"]["type"], answer["payload"]["status"]), ("response", "registered"))
    found = []

    def finds():
        found[:] = http(f"{edges[1]}/a2a/tools?name=add&agent={bob.id}")[1]["tools"]
        return found

    until("another edge finds the tool", finds)
    equal(found, [{"agent": bob.id, **ADD}])
    equal(http(f"{edges[2]}/a2a/manifest?agent={bob.id}")[1]["tools"], [ADD])


def notify(enter, edges):
    bob, al = enter("bob", hear=0), enter("al", say=1)
    payload = '{ "text" : "ü\\u00fc \\ud83d\\ude00",\t"n":1.0e2,"big":12345678901234567890, "half":"\\ud83d" }'
    first = al.envelope("notification", bob.id, payload, metadata={"ttl": 3})
    al.say(first)
    al.say(first)  # which does not know that it was stored
    for i in range(20):
        al.notify(bob.id, {"action": "log", "level": "info", "message": f"m{i}"})
    got = bob.next()
    assert f'"payload":{payload}' in got["raw"], got["raw"]
    equal((got["metadata"]["ttl"], got["header"]["from"]), (2, al.id))
    equal([bob.next()["payload"]["message"] for _ in range(20)], [f"m{i}" for i in range(20)])


def ask(enter, edges):
    bob, carol = enter("bob", hear=0, say=1), enter("carol", say=2)

    def work():
        request = bob.next()
        equal((request["header"]["type"], request["payload"]["query"]), ("request", "tidy"))
        for i in range(20):
            bob.chunk(request, f"piece {i}")
        bob.respond(request, {"action": "done", "result_summary": "tidied"})

    working = Working(work)
    question = carol.envelope("request", bob.id, {"action": "execute", "query": "tidy"}, metadata={"deadline_ms": 60000})
    parts = list(carol.ask(question))
    working.join()
    equal([p["payload"].get("text") or p["payload"]["result_summary"] for p in parts], [f"piece {i}" for i in range(20)] + ["tidied"])
    for p in parts:
        equal([p["header"][k] for k in ("parent_id", "from", "to")], [question.id, bob.id, carol.id])
    equal(parts[-1]["header"]["type"], "response")


def tools(enter, edges):
    bob, al = enter("bob", hear=0, say=1), enter("al", hear=1, say=2)
    bob.register([ADD])
    refused(lambda: call(al, bob.id, "add", {"a": 1, "b": "two"}), 400, "INVALID_REQUEST", "/payload/arguments/b")
    refused(lambda: call(al, bob.id, "subtract", {}), 404, "NOT_FOUND")
    called = Working(lambda: call(al, bob.id, "add", {"a": 1, "b": 2}))
    request = bob.next()
    bob.respond(request, {"sum": sum(request["payload"]["arguments"].values())})
    equal(called.join()["payload"]["sum"], 3)
    # what is done for bob may call what bob allows, and nothing else
    al.register([])
    bob.register([ADD, {"name": "erase"}])
    task = Working(lambda: bob.answer(bob.envelope("request", al.id, {"action": "execute", "query": "count", "allowed_tools": ["add"]})))
    given = al.next()
    refused(lambda: call(al, bob.id, "erase", {}, parent=given["header"]["msg_id"]), 403, "FORBIDDEN")
    al.respond(given, {})
    task.join()


def approval(enter, edges):
    bob, boss = enter("bob", hear=0, say=1), enter("boss", hear=2)
    question = bob.envelope("request", boss.id, {"action": "require_approval", "what": "erase everything"})
    answered = Working(lambda: bob.answer(question))
    waiting = []

    def listed():
        waiting[:] = http(f"{edges[2]}/a2a/approvals?state=pending&agent={bob.id}")[1]["approvals"]
        return waiting

    until("the approval is listed", listed)
    equal([waiting[0]["id"], waiting[0]["to"], waiting[0]["payload"]["what"]], [question.id, boss.id, "erase everything"])

    def decide(edge, as_, body):
        status, answer = http(f"{edges[edge]}/a2a/approvals/{question.id}?agent={bob.id}&as={as_}", body)
        if status >= 400:
            raise Refusal(status, answer)
        return answer

    refused(lambda: decide(0, bob.id, {"approved": True}), 403, "FORBIDDEN")
    refused(lambda: decide(0, boss.id, {"approved": "yes"}), 400, "INVALID_REQUEST")
    decided = decide(1, boss.id, {"approved": False, "note": "no"})
    equal([decided["state"], decided["by"], decided["note"]], ["denied", boss.id, "no"])
    refused(lambda: decide(2, boss.id, {"approved": True}), 409, "INVALID_REQUEST")
    equal(answered.join()["payload"]["approved"], False)
    equal(http(f"{edges[0]}/a2a/approvals/nobody-asked")[0], 404)


def resume(enter, edges):
    bob, al = enter("bob", hear=0), enter("al", say=1)
    for text in "123":
        al.notify(bob.id, {"text": text})
    had = [bob.next() for _ in range(3)]
    equal([e["payload"]["text"] for e in had], ["1", "2", "3"])
    bob.cut()
    for text in "45":
        al.notify(bob.id, {"text": text})
    bob.open(hear=2, last=had[1]["seq"])
    al.notify(bob.id, {"text": "6"})
    equal([bob.next()["payload"]["text"] for _ in range(4)], ["3", "4", "5", "6"])


def errors(enter, edges):
    bob, al = enter("bob", hear=0), enter("al", say=1)

    def bad(header=None, **members):
        e = {"header": {"msg_id": "m", "type": "notification", "from": al.id, "to": bob.id}, "payload": {}, **members}
        e["header"].update(header or {})
        e["header"] = {k: v for k, v in e["header"].items() if v is not None}
        return json.dumps(e)

    def says(text):
        if hasattr(al, "raw"):
            raise Refusal(None, al.raw(text))
        return al.post(text)

    for text, status, code, path in [
        ("", 400, "INVALID_REQUEST", None),
        ('{"header":', 400, "INVALID_REQUEST", None),
        ("[]", 400, "INVALID_REQUEST", None),
        (bad({"msg_id": None}), 400, "INVALID_REQUEST", "/header/msg_id"),
        (bad({"msg_id": 7}), 400, "INVALID_REQUEST", "/header/msg_id"),
        (bad({"type": "shout"}), 400, "INVALID_REQUEST", "/header/type"),
        (bad({"to": None}), 400, "INVALID_REQUEST", "/header/to"),
        (bad({"type": "response"}), 400, "INVALID_REQUEST", "/header/parent_id"),
        (bad(metadata={"ttl": 0}), 400, "INVALID_REQUEST", "/metadata/ttl"),
        (bad(payload={"action": "think"}), 400, "INVALID_REQUEST", "/payload/thought_text"),
        (bad({"to": f"nobody-{al.id}"}), 404, "AGENT_NOT_FOUND", None),
        (bad(payload="x" * (1 << 20)), 413, "MESSAGE_TOO_LARGE", None),
    ]:
        refused(lambda: says(text), status, code, path)
    al.notify(bob.id, {"last": True})  # and it goes on
    equal(bob.next()["payload"], {"last": True})
    if hasattr(al, "raw"):
        return
    for status, body, more in [
        (405, "{}", {"method": "PUT"}),
        (415, "{}", {"headers": {"Content-Type": "text/xml"}}),
        (404, "", {"method": "GET", "path": "/a2a/nothing"}),
        (400, "", {"method": "GET", "path": "/a2a/events"}),
        (400, "", {"method": "GET", "path": "/a2a/events?agent=x", "headers": {"Last-Event-ID": "x"}}),
    ]:
        refused(lambda: al.post(body, **more), status, "INVALID_REQUEST")


SCENES = {s.__name__: s for s in (register, notify, ask, tools, approval, resume, errors)}
