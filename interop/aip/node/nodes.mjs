// Nodes that others call: an agent that does what it is asked for by the first word of a session, else says it back, and a toolbox.
import grpc from '@grpc/grpc-js';
import { AgentService, ToolService, options, text, textOf } from './gateway.mjs';
import { failure } from './details.mjs';

const schema = { type: 'object', required: ['a', 'b'], properties: { a: { type: 'integer' }, b: { type: 'integer' } } };

// Node is a server, which registers with gateways by what it is.
class Node {
  constructor(service, handlers) {
    this.server = new grpc.Server(options);
    this.server.addService(service, handlers);
  }

  // listen resolves to the address of the node.
  listen() {
    return new Promise((resolve, reject) => {
      this.server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (err, port) => {
        this.address = `127.0.0.1:${port}`;
        return err ? reject(err) : resolve(this.address);
      });
    });
  }

  // beat gives signs of life from now on.
  beat(gateway) {
    this.beating = setInterval(() => gateway.ask('Heartbeat', { sender_id: this.id }).catch(() => {}), 10000);
  }

  close() {
    clearInterval(this.beating);
    this.server.forceShutdown();
  }
}

export class Agent extends Node {
  constructor(id, domain) {
    super(AgentService.service, { CallAgent: (call) => this.callAgent(call).catch(() => {}) });
    Object.assign(this, { id, domain, cancelled: new Map() });
  }

  get info() {
    return {
      agent_id: this.id, address: this.address, name: 'An agent in Node', domain: this.domain, input_mode: ['TEXT', 'IMAGE'], output_mode: ['TEXT'],
      description: 'says it back', skills: [{ skill_id: 'echo', capability: 'says it back' }], version: '1.0',
    };
  }

  // ended resolves once a session has been cancelled.
  ended(session) {
    if (!this.cancelled.has(session)) {
      let end;
      const over = new Promise((resolve) => (end = resolve));
      this.cancelled.set(session, { over, end });
    }
    return this.cancelled.get(session);
  }

  // callAgent holds a session. It throws when its caller gives it up.
  async callAgent(call) {
    call.on('cancelled', () => this.ended(session).end());
    const say = (to, session_status, content) => new Promise((resolve) => {
      const { sender_id, receiver_id, session_id, task_info, message_id } = to;
      call.write({ sender_id: receiver_id, receiver_id: sender_id, session_id, session_status, task_info, reply_to_message_id: message_id, content }, resolve);
    });
    const fail = (name) => call.emit('error', failure(name, `it fails: ${name}`, 1, 500000000));
    let session = '';
    for await (const m of call.iterator({ destroyOnReturn: false })) {
      session = m.session_id;
      const [does, what] = m.session_status === 'START_QUEST' ? textOf(m).split(' ') : [];
      if (does === 'hang') {
        await say(m, 'HOLD_RESPONSE', [text(`hanging, timed ${Number.isFinite(Number(call.getDeadline()))}`)]);
        await this.ended(session).over;
        return;
      }
      if (does === 'fail') return fail(what);
      if (does === 'answer') {
        await say(m, 'HOLD_RESPONSE', [text('so far')]);
        return fail(what);
      }
      if (does === 'count') {
        for (let i = 0; i < Number(what); i++) await say(m, 'HOLD_RESPONSE', [text(`${i}`)]);
        continue;
      }
      if (m.session_status === 'STOP_QUEST') {
        await say(m, 'STOP_RESPONSE', m.content);
        break;
      }
      await say(m, 'HOLD_RESPONSE', m.content);
    }
    call.end();
  }
}

export class Toolbox extends Node {
  constructor(id, domain, agent) {
    super(ToolService.service, { CallTool: (call, answer) => this.callTool(call, answer) });
    Object.assign(this, { id, domain, agent });
  }

  get info() {
    const names = ['echo', 'bytes', 'fail', 'wrong', 'hang', 'cancelled'];
    return {
      toolbox_id: this.id, address: this.address, name: 'A toolbox in Node', domain: this.domain, description: 'adds, and more',
      tools: [
        { name: 'add', description: 'adds two numbers', arguments: JSON.stringify(schema), version: '1' },
        ...names.map((name) => ({ name, description: '', arguments: 'anything', version: '1' })),
      ],
    };
  }

  async callTool({ request }, answer) {
    const { sender_id, receiver_id, session_id, tool_name } = request;
    const reply = (more) => answer(null, { sender_id: receiver_id, receiver_id: sender_id, session_id, ...more });
    if (tool_name === 'echo') return reply({ content: [text(request.arguments)] });
    const args = JSON.parse(request.arguments);
    const tools = {
      add: () => reply({ content: [text(`${args.a + args.b}`)] }),
      bytes: () => reply({ content: [{ image: Buffer.from([...Array(args.n).keys()]) }] }),
      fail: () => answer(failure(args.code, `it fails: ${args.code}`, 2, 0)),
      wrong: () => reply({ is_error: true, error_message: 'it is wrong' }),
      hang: () => {}, // until its caller gives up
      cancelled: async () => {
        await this.agent.ended(args.session).over;
        reply({ content: [text('cancelled')] });
      },
    };
    if (!tools[tool_name]) return answer({ code: grpc.status.NOT_FOUND, details: `no tool ${tool_name}` });
    return tools[tool_name]();
  }
}

// serve has an agent and a toolbox registered with two gateways, until stop is called.
export async function serve(gateways, tag, domain) {
  const agent = new Agent(`agent-${tag}`, domain);
  const toolbox = new Toolbox(`toolbox-${tag}`, domain, agent);
  await Promise.all([agent.listen(), toolbox.listen()]);
  await Promise.all(gateways.map((g) => g.ready()));
  await gateways[0].ask('RegisterAgent', agent.info, { deadline: Date.now() + 5000 });
  await gateways[1].ask('RegisterTool', toolbox.info, { deadline: Date.now() + 5000 });
  agent.beat(gateways[1]);
  toolbox.beat(gateways[2]);
  const stop = async () => {
    for (const n of [agent, toolbox]) {
      await gateways[2].ask('DeregisterNode', { node_id: n.id });
      n.close();
    }
  };
  return { agent, toolbox, stop };
}
