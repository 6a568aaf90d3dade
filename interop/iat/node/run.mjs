// node run.mjs CONNECTION SCENE TAG EDGE…: plays a scene, or is a host or a sub-agent. Its status says how that went.
import { EventSourceAgent } from './eventsource.mjs';
import { FetchAgent } from './fetch.mjs';
import { HTTP2Agent } from './http2.mjs';
import { SocketAgent } from './ws.mjs';
import { scenes } from './scenes.mjs';
import { streams } from './streams.mjs';
import { host, subagent } from './task.mjs';

const connections = { http2: HTTP2Agent, fetch: FetchAgent, eventsource: EventSourceAgent, ws: SocketAgent };
const [connection, scene, tag, ...edges] = process.argv.slice(2);
const agents = [];

async function enter(name, where) {
  const a = new connections[connection](`${name}-${tag}`, edges);
  agents.push(a);
  await a.open(where);
  return a;
}

await { ...scenes, streams, host, subagent }[scene]({ enter, edges, tag });
for (const a of agents) {
  a.cut();
  a.close?.();
}
