// What nodes say of themselves, and hear of each other, at different edges.
import assert from 'node:assert/strict';
import { is, refused, until } from './expect.mjs';
import { Agent, Toolbox, serve } from './nodes.mjs';

const bare = ({ agent_info, toolbox_info }) => agent_info ?? toolbox_info;

// refusals are what can't be registered.
async function refusals(gateway, { agent, toolbox }) {
  const other = new Agent(`other-${agent.id}`, agent.domain);
  await other.listen();
  const asAgent = (more) => gateway.ask('RegisterAgent', { ...other.info, ...more });
  const asToolbox = (more) => gateway.ask('RegisterTool', { toolbox_id: other.id, address: other.address, ...more });
  await refused(asAgent({ agent_id: agent.id }), 'ALREADY_EXISTS', `Agent [${agent.id}] already registered.`);
  await refused(asToolbox({ toolbox_id: agent.id }), 'ALREADY_EXISTS', `Tool [${agent.id}] already registered.`);
  await refused(asAgent({ address: toolbox.address }), 'ALREADY_EXISTS', `Address [${toolbox.address}] already registered.`);
  await refused(asToolbox({ address: agent.address }), 'ALREADY_EXISTS', `Address [${agent.address}] already registered.`);
  await refused(asAgent({ agent_id: '' }), 'INVALID_ARGUMENT');
  await refused(asAgent({ address: 'nowhere' }), 'INVALID_ARGUMENT');
  await refused(asAgent({ address: '169.254.1.1:80' }), 'PERMISSION_DENIED');
  other.close();
  await refused(asAgent({}), 'UNAVAILABLE');
  assert.equal((await gateway.nodes()).has(other.id), false);
}

export const registry = {
  async register({ gateways, tag, domain }) {
    const agent = new Agent(`agent-${tag}`, domain);
    const toolbox = new Toolbox(`toolbox-${tag}`, domain, agent);
    await Promise.all([agent.listen(), toolbox.listen()]);
    const { success, peers } = await gateways[0].ask('RegisterAgent', agent.info, { deadline: Date.now() + 60000 });
    assert.ok(success);
    assert.deepEqual(peers.map(bare).find((p) => p.agent_id === agent.id), agent.info);
    assert.deepEqual(await gateways[1].ask('RegisterTool', toolbox.info), { success: true });
    for (const g of gateways) {
      await until('both are listed', async () => (await g.nodes(domain)).size === 2);
      const all = await g.nodes(domain);
      assert.deepEqual([bare(all.get(agent.id)), bare(all.get(toolbox.id))], [agent.info, toolbox.info]);
      assert.ok((await g.nodes('')).has(agent.id) && !(await g.nodes(`no ${domain}`)).has(agent.id));
    }
    await refusals(gateways[2], { agent, toolbox });
    for (const g of gateways) assert.deepEqual(await g.ask('Heartbeat', { sender_id: agent.id }), { success: true, message: 'Heartbeat received' });
    assert.deepEqual(await gateways[0].ask('Heartbeat', { sender_id: `no ${tag}` }), { success: false, message: `Node no ${tag} not registered` });
    const news = { ...agent.info, description: 'says something else', version: '2.0' };
    assert.ok((await gateways[1].ask('UpdateNodeInfo', { node_info: { agent_info: news } })).success);
    await until('the update is seen', async () => bare((await gateways[2].nodes(domain)).get(agent.id)).version === '2.0');
    assert.deepEqual(bare((await gateways[2].nodes(domain)).get(agent.id)), news);
    for (const success of [true, false]) assert.deepEqual(await gateways[2].ask('DeregisterNode', { node_id: agent.id }), { success });
    for (const g of gateways) await until('it is listed no more', async () => [...(await g.nodes(domain)).keys()].join() === toolbox.id);
    await gateways[0].ask('DeregisterNode', { node_id: toolbox.id });
    agent.close();
    toolbox.close();
  },

  // An agent whose call ends with some statuses is a node no more.
  async failing({ gateways, tag, domain }) {
    for (const [code, stays] of [['FAILED_PRECONDITION', true], ['RESOURCE_EXHAUSTED', true], ['INTERNAL', false], ['UNKNOWN', false], ['UNAVAILABLE', false], ['DATA_LOSS', false]]) {
      const { agent, stop } = await serve(gateways, `${tag}-${code}`, domain);
      const call = gateways[1].call();
      await call.say({ sender_id: 'caller', receiver_id: agent.id, session_id: 's', session_status: 'START_QUEST', content: [{ text: `fail ${code}` }] });
      is((await call.rest()).status, code, `it fails: ${code}`);
      for (const g of gateways) await until(`${code} says of the node: ${stays}`, async () => (await g.nodes(domain)).has(agent.id) === stays);
      await stop();
    }
  },

  async updates({ gateways, tag, domain }) {
    const agent = new Agent(`agent-${tag}`, domain);
    await agent.listen();
    const heard = [];
    const watch = (k, subscriber_id, node_ids) => new Promise((resolve, reject) => {
      const stream = gateways[k].subscribe({ subscriber_id, node_ids });
      const over = new Promise((end) => stream.on('status', end));
      stream.on('metadata', () => resolve({ stream, over }));
      stream.on('error', reject); // of a stream that has begun it is the status
      stream.on('data', (u) => u.node_id === agent.id && heard.push([subscriber_id, u.update_type, bare(u.peer ?? {})]));
    });
    const all = await watch(2, `all-${tag}`, []);
    const some = await watch(1, `some-${tag}`, [agent.id, `other-${tag}`]);
    const others = await watch(1, `others-${tag}`, [`other-${tag}`]);
    const news = { ...agent.info, version: '2.0' };
    const told = (who) => heard.filter(([id]) => id === `${who}-${tag}`).map(([, ...what]) => what);
    const tells = (many) => until(`change ${many} is told`, async () => told('all').length >= many && told('some').length >= many); // what a node was for a moment alone is not
    await gateways[0].ask('RegisterAgent', agent.info);
    await tells(1);
    await gateways[1].ask('UpdateNodeInfo', { node_info: { agent_info: news } });
    await tells(2);
    await gateways[2].ask('DeregisterNode', { node_id: agent.id });
    await tells(3);
    const want = [['ADDED', agent.info], ['UPDATED', news], ['REMOVED', undefined]];
    assert.deepEqual([told('all'), told('some'), told('others')], [want, want, []]);
    assert.ok((await gateways[0].ask('Unsubscribe', { subscriber_id: `some-${tag}`, node_ids: [] })).success);
    is(await some.over, 'OK');
    all.stream.cancel();
    others.stream.cancel();
    is(await all.over, 'CANCELLED');
    agent.close();
  },
};
