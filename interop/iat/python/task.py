"""A host and a sub-agent, each of which may be of another language: the host has it tidy, allows it one tool, and approves what it asks for."""

from agent import http, until
from scenes import ADD, Working, call, equal, refused


def subagent(enter, edges, tag):
    me = enter("sub", hear=0, say=1)
    me.register([])
    print("ready", flush=True)
    task = me.next()
    host, of = task["header"]["from"], {"parent": task["header"]["msg_id"]}
    equal((task["payload"]["action"], task["payload"]["query"]), ("execute", f"tidy {tag} ü😀"))
    me.notify(host, {"action": "think", "thought_text": "hm"})
    added = call(me, host, "add", {"a": 20, "b": 22}, **of)["payload"]["sum"]
    refused(lambda: call(me, host, "add", {"a": 20, "b": "x"}, **of), 400, "INVALID_REQUEST", "/payload/arguments/b")
    refused(lambda: call(me, host, "erase", {}, **of), 403, "FORBIDDEN")
    approval = me.answer(me.envelope("request", host, {"action": "require_approval", "what": "erase"}))
    equal(approval["payload"]["approved"], True)
    for i in range(10):
        me.chunk(task, f"{i} ü😀")
    me.respond(task, {"action": "done", "result_summary": f"sum {added}", "usage_stats": {"chunks": 10}})


def host(enter, edges, tag):
    me = enter("host", hear=2)
    me.register([ADD, {"name": "erase"}])

    def serve():
        equal(me.next()["payload"]["thought_text"], "hm")
        request = me.next()
        me.respond(request, {"sum": sum(request["payload"]["arguments"].values())})

    def approve():
        waiting = []

        def asked():
            waiting[:] = http(f"{edges[1]}/a2a/approvals?state=pending&to={me.id}")[1]["approvals"]
            return waiting

        until("the sub-agent asks for approval", asked)
        question = waiting[0]
        equal(http(f"{edges[0]}/a2a/approvals/{question['id']}?agent={question['agent']}&as={me.id}", {"approved": True})[0], 200)

    serving, approving = Working(serve), Working(approve)
    task = me.envelope("request", f"sub-{tag}", {"action": "execute", "query": f"tidy {tag} ü😀", "allowed_tools": ["add"]})
    parts = [p["payload"].get("text") or p["payload"]["result_summary"] for p in me.ask(task)]
    serving.join()
    approving.join()
    equal(parts, [f"{i} ü😀" for i in range(10)] + ["sum 42"])
