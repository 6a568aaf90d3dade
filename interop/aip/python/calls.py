"""Calls of nodes that may be of another language: sessions with the agent, and calls of tools of the toolbox."""

import json
import os

import aip_pb2 as pb
from expect import Working, ended, equal, refused, retry_after, until
from gateway import ANSWER, HOLD, LAST, START, STOP, text, text_of

EVERY = bytes(range(256))


def session(peer, id, **more):
    """Returns what makes messages of a session with the agent of a peer."""

    def message(status, *content, **also):
        fields = {"sender_id": "caller", "receiver_id": f"agent-{peer}", "session_id": id, **more, **also}
        return pb.AgentMessage(session_status=status, content=content, **fields)

    return message


def talk(gateways, tag, peer, **_):
    """Both speak at once, and content comes back as it is."""
    for g in gateways:
        call = g.call()
        assert f"agent-{peer}" in g.nodes()  # the session stays empty meanwhile
        m = session(peer, f"s-{tag}", task_info=pb.TaskInfo(task_id="t", parent_task_ids=["t0", "t1"], task_status=pb.TaskInfo.EXECUTING))
        first = [text("ü😀"), pb.ContentItem(image=EVERY), pb.ContentItem(audio=b""), pb.ContentItem(embedded=os.urandom(1 << 20))]
        quests = [m(START, *first, message_id="first")]
        for i in range(50):
            quests.append(m(HOLD, text(str(i)), pb.ContentItem(embedded=os.urandom(20000)), message_id=f"m{i}"))
        quests.append(m(STOP, text("bye"), message_id="last"))
        for q in quests:
            call.say(q)
        answers, status = call.rest()
        ended(status, "OK")
        equal(len(answers), len(quests))
        for a, q in zip(answers, quests):
            want = pb.AgentMessage()
            want.CopyFrom(q)
            want.sender_id, want.receiver_id, want.reply_to_message_id = q.receiver_id, q.sender_id, q.message_id
            want.session_status = LAST if q.session_status == STOP else ANSWER
            want.message_id = a.message_id
            equal(a, want)


def turns(gateways, tag, peer, **_):
    """What is said waits for the answer to what was said before, in sessions that are interleaved."""

    def one(k):
        call = gateways[k % len(gateways)].call()
        m = session(peer, f"s-{tag}-{k}")
        call.say(m(START, text("count 5")))
        equal([text_of(call.next()) for _ in range(5)], list("01234"))
        for i in range(10):
            call.say(m(HOLD, text(f"{k} {i}")))
            equal(text_of(call.next()), f"{k} {i}")
        call.say(m(STOP))
        answers, status = call.rest()
        equal([a.session_status for a in answers], [LAST])
        ended(status, "OK")

    for w in [Working(lambda k=k: one(k)) for k in range(10)]:
        w.join()


def large(gateways, tag, peer, **_):
    call = gateways[2].call()
    m = session(peer, f"s-{tag}")
    body = os.urandom(12 << 20)
    call.say(m(START, pb.ContentItem(image=body)))
    assert call.next().content[0].image == body
    call.say(m(HOLD, pb.ContentItem(embedded=bytes((16 << 20) + 1))))
    ended(call.rest()[1], "RESOURCE_EXHAUSTED")
    assert f"agent-{peer}" in gateways[2].nodes()


def refusals(gateways, tag, peer, **_):
    """What is no session is refused in the words of the protocol."""
    m = session(peer, f"s-{tag}")
    for code, words, *said in [
        ("ABORTED", "Empty request stream"),
        ("INVALID_ARGUMENT", "First message must be START_QUEST", m(HOLD)),
        ("INVALID_ARGUMENT", "Missing session_id in START_QUEST", m(START, session_id="")),
        ("NOT_FOUND", "Receiver not found", m(START, receiver_id=f"nobody-{tag}")),
        ("INVALID_ARGUMENT", None, m(START), m(HOLD, session_id="another")),
        ("INVALID_ARGUMENT", None, m(START), m(HOLD, sender_id="another")),
        ("INVALID_ARGUMENT", None, m(START), m(START)),
    ]:
        call = gateways[1].call()
        for q in said:
            call.say(q)
        if not said:
            call.half_close()
        ended(call.rest()[1], code, words)
    refused(lambda: gateways[2].tool(f"nobody-{tag}", "add", "{}"), "NOT_FOUND", "Receiver not found")
    refused(lambda: gateways[2].tool(f"agent-{peer}", "add", "{}"), "NOT_FOUND")


def statuses(gateways, tag, peer, **_):
    """A node's own status passes, with what it says of trying again."""
    for code in ("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "PERMISSION_DENIED", "ABORTED", "OUT_OF_RANGE"):
        for does, want in (("fail", []), ("answer", [(ANSWER, "so far"), (LAST, f"it fails: {code}")])):
            call = gateways[2].call()
            call.say(session(peer, f"s-{tag}")(START, text(f"{does} {code}")))
            answers, status = call.rest()
            ended(status, code, f"it fails: {code}")
            equal(retry_after(status), 1.5)
            equal([(a.session_status, text_of(a)) for a in answers], want)
    status = refused(lambda: gateways[1].tool(f"toolbox-{peer}", "fail", '{"code":"INTERNAL"}'), "INTERNAL", "it fails: INTERNAL")
    equal(retry_after(status), 2)
    for id in (f"agent-{peer}", f"toolbox-{peer}"):
        assert id in gateways[0].nodes()


def giveUp(gateways, tag, peer, **_):
    """Giving up, and a deadline, reach the node."""

    def cancelled(id):
        equal(text_of(gateways[1].tool(f"toolbox-{peer}", "cancelled", json.dumps({"session": id}))), "cancelled")

    call = gateways[2].call()
    call.say(session(peer, f"s-{tag}")(START, text("hang")))
    equal(text_of(call.next()), "hanging, timed false")
    call.cancel()
    ended(call.rest()[1], "CANCELLED")
    cancelled(f"s-{tag}")
    seconds = [1]

    def passes():
        timed = gateways[2].call(timeout=seconds[-1])
        timed.say(session(peer, f"s-{tag}-{seconds[-1]}")(START, text("hang")))
        answers, status = timed.rest()
        ended(status, "DEADLINE_EXCEEDED")
        if not answers:
            seconds.append(2 * seconds[-1])
            return False
        equal(text_of(answers[0]), "hanging, timed true")
        return True

    until("the node has answered before a deadline that passes", passes)
    cancelled(f"s-{tag}-{seconds[-1]}")
    refused(lambda: gateways[1].tool(f"toolbox-{peer}", "hang", "{}", timeout=0.5), "DEADLINE_EXCEEDED")
    assert f"agent-{peer}" in gateways[0].nodes()


def tools(gateways, peer, **_):
    box = f"toolbox-{peer}"
    for g in gateways:
        equal(json.loads(text_of(g.tool(box, "add", '{"a": 20, "b": 22}'))), 42)
        arguments = '{ "text" : "ü\\u00fc", "n":1.0e2 }'
        want = pb.ToolResponse(sender_id=box, receiver_id="caller", session_id="s7", content=[text(arguments)])
        equal(g.tool(box, "echo", arguments, session="s7"), want)
        equal(list(g.tool(box, "bytes", '{"n":256}').content), [pb.ContentItem(image=EVERY)])
        wrong = g.tool(box, "wrong", "{}")
        equal((wrong.is_error, wrong.error_message), (True, "it is wrong"))
    refused(lambda: gateways[0].tool(box, "none", "{}"), "NOT_FOUND")


def foreign(gateways, tag, peer, **_):
    """The peer is an agent of a WebSocket, with a tool that adds one."""
    for g in gateways[1:]:
        listed = g.nodes()[peer]
        equal((listed.address, list(listed.skills)), (g.address, [pb.AgentInfo.AgentSkill(skill_id="next", capability="adds one")]))
    m = session(peer, f"s-{tag}", receiver_id=peer)
    call = gateways[2].call()
    call.say(m(START, text('{ "do" : "it" }')))
    call.say(m(HOLD, text("one"), pb.ContentItem(image=EVERY)))
    call.say(m(HOLD, text("two")))
    got = []
    while "last" not in got:
        got += filter(None, [text_of(call.next())])
    equal(got, ["it was said", "one image", "last"])
    call.say(m(STOP))
    answers, status = call.rest()
    ended(status, "OK")
    want = [(LAST, peer, [pb.ContentItem(image=EVERY)])]
    equal([(a.session_status, a.sender_id, list(a.content)) for a in answers], want)
    equal(json.loads(text_of(gateways[1].tool(peer, "next", '{"n": 41}'))), 42)
    refused(lambda: gateways[1].tool(peer, "next", '{"n": "x"}'), "INVALID_ARGUMENT")
    refused(lambda: gateways[1].tool(peer, "none", "{}"), "NOT_FOUND")


def busy(gateways, tag, peer, **_):
    """The edge takes one call of each caller at a time for an agent, and two of all."""

    def call(n, sender):
        c = gateways[1].call()
        c.say(session(peer, f"s-{tag}-{n}", sender_id=sender)(START, text("hang")))
        return c

    held = []
    for sender in ("caller", "another"):
        held.append(call(len(held), sender))
        held[-1].next()
    for sender in ("caller", "third"):
        status = call(sender, sender).rest()[1]
        ended(status, "RESOURCE_EXHAUSTED")
        equal(retry_after(status), 1)
    for c in held:
        c.cancel()
        c.rest()


def token(gateways, peer, **_):
    """The program has a token, for some agents."""
    refused(lambda: gateways[0].stub.GetNodes(pb.GetNodesRequest()), "UNAUTHENTICATED")
    refused(lambda: gateways[1].ask("Heartbeat", pb.HeartbeatRequest(sender_id="stranger")), "PERMISSION_DENIED")
    stranger = pb.ToolRequest(sender_id="stranger", receiver_id=f"toolbox-{peer}", tool_name="add", arguments="{}")
    refused(lambda: gateways[1].ask("RouteToolCalling", stranger), "PERMISSION_DENIED")


CALLS = {s.__name__: s for s in (talk, turns, large, refusals, statuses, giveUp, tools, foreign, busy, token)}
