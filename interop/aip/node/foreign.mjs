// A gateway that is not Agora's, with an agent and a toolbox: it tells of them who subscribes.
import { once } from 'node:events';
import grpc from '@grpc/grpc-js';
import { AgentService, GatewayService, ToolService, options } from './gateway.mjs';
import { Agent, Toolbox } from './nodes.mjs';

export async function gateway(tag) {
  const agent = new Agent(`agent-${tag}`, 'far');
  const toolbox = new Toolbox(`toolbox-${tag}`, 'far', agent);
  await Promise.all([agent.listen(), toolbox.listen()]);
  const toAgent = new AgentService(agent.address, grpc.credentials.createInsecure(), options);
  const toToolbox = new ToolService(toolbox.address, grpc.credentials.createInsecure(), options);
  const peers = () => [{ agent_info: agent.info }, { toolbox_info: toolbox.info }];
  const server = new grpc.Server(options);
  server.addService(GatewayService.service, {
    GetNodes: (call, answer) => answer(null, { peers: peers() }),
    SubscribeToUpdates(call) {
      for (const peer of peers()) call.write({ update_type: 'ADDED', node_id: peer.agent_info?.agent_id ?? peer.toolbox_info.toolbox_id, peer });
    },
    RouteToolCalling: ({ request }, answer) => toToolbox.CallTool(request, answer),
    RouteAgentCalling(call) {
      const on = toAgent.CallAgent(new grpc.Metadata(), { deadline: call.getDeadline() });
      call.pipe(on);
      call.on('cancelled', () => on.cancel());
      on.on('data', (m) => call.write(m));
      on.on('error', (err) => call.emit('error', err));
      on.on('end', () => call.end());
    },
  });
  const port = await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (err, p) => (err ? reject(err) : resolve(p)));
  });
  console.log(`ready 127.0.0.1:${port}`);
  process.stdin.resume();
  await once(process.stdin, 'end');
  for (const c of [toAgent, toToolbox]) c.close();
  for (const n of [agent, toolbox]) n.close();
  server.forceShutdown();
}
