"""A host of models as its users write one: two of them talk by `agora mcp`, at two edges."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

AGORA, EDGES = sys.argv[1], sys.argv[2:]


@asynccontextmanager
async def host(agent, edge):
    server = StdioServerParameters(command=AGORA, args=["mcp", "--as", agent, "--url", edge], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def use(session, tool, arguments=None, **more):
    result = await session.call_tool(tool, arguments or {}, **more)
    assert not result.is_error, result
    assert result.content[0].text, result
    return result.structured_content


async def main():
    async with host("py-1", EDGES[0]) as one, host("py-2", EDGES[1]) as two:
        names = {tool.name for tool in (await one.list_tools()).tools}
        assert {"agora_who", "agora_send", "agora_ask", "agora_inbox", "agora_reply", "agora_join", "agora_publish", "agora_read_space", "agora_why"} == names, names

        await use(two, "agora_inbox")  # it is there
        sent = await use(one, "agora_send", {"to": "py-2", "text": "hello"})
        assert sent["tier"] in ("stored", "delivered", "acked"), sent
        got = await use(two, "agora_inbox", {"wait_s": 30})
        assert [m["text"] for m in got["messages"]] == ["hello"], got
        done = await use(two, "agora_inbox", {"ack": got["messages"][0]["seq"]})
        assert done["acknowledged"] == 1 and done["messages"] == [], done

        async def answer():
            while not (asked := (await use(two, "agora_inbox", {"wait_s": 30}))["messages"]):
                pass
            assert asked[0]["kind"] == "request", asked
            await use(two, "agora_reply", {"seq": asked[0]["seq"], "text": "noon"})

        said, _ = await asyncio.gather(use(one, "agora_ask", {"to": "py-2", "text": "what time is it?"}), answer())
        assert said["answered"] and said["text"] == "noon", said

        heard, begun = [], asyncio.Event()

        async def progress(done, total, message):
            heard.append(message)
            begun.set()

        async def go_on():
            await begun.wait()
            await use(two, "agora_send", {"to": "streamer", "text": "go on"})

        said, _ = await asyncio.gather(use(one, "agora_ask", {"to": "streamer", "text": "tell"}, progress_callback=progress), go_on())
        assert said["text"] == "word by word", said
        assert heard[0] == "word ", heard  # it comes before the rest is said

        wrong = await one.call_tool("agora_send", {"to": "nobody", "text": "x"})
        assert wrong.is_error and "agora_who" in wrong.content[0].text, wrong


asyncio.run(main())
