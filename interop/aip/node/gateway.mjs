// A gateway, and content, as programs have them that load the proto themselves.
import grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const loaded = loadSync(process.env.AIP_PROTO, { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true });
export const { GatewayService, AgentService, ToolService } = grpc.loadPackageDefinition(loaded).grpc_service;

// options let messages be as large as a gateway takes them. The library's own bound is 4 MiB.
export const options = { 'grpc.max_receive_message_length': 16 << 20, 'grpc.max_send_message_length': -1 };

export class Gateway {
  constructor(address) {
    this.address = address;
    this.client = new GatewayService(address, credentials(), options);
  }

  // ready resolves once the gateway is connected to.
  ready(seconds = 5) {
    return new Promise((resolve, reject) => this.client.waitForReady(Date.now() + seconds * 1000, (err) => (err ? reject(err) : resolve())));
  }

  // ask calls a method with one message each way.
  ask(method, request, more = {}) {
    return new Promise((resolve, reject) => {
      this.client[method](request, token(), more, (err, answer) => (err ? reject(err) : resolve(answer)));
    });
  }

  call(more = {}) {
    return new Call(this.client.RouteAgentCalling(token(), more));
  }

  subscribe(request) {
    return this.client.SubscribeToUpdates(request, token());
  }

  // nodes returns the nodes of a domain by their ids.
  async nodes(domain = 'default') {
    const { peers } = await this.ask('GetNodes', { agent_id: 'anyone', domain });
    return new Map(peers.map((p) => [p.agent_info?.agent_id ?? p.toolbox_info.toolbox_id, p]));
  }

  tool(toolbox, tool_name, args, more = {}) {
    const request = { sender_id: more.from ?? 'caller', receiver_id: toolbox, session_id: more.session ?? 's', tool_name, arguments: args };
    return this.ask('RouteToolCalling', request, more);
  }

  close() {
    this.client.close();
  }
}

function credentials() {
  return process.env.AIP_TLS ? grpc.credentials.createSsl() : grpc.credentials.createInsecure();
}

function token() {
  const head = new grpc.Metadata();
  if (process.env.AIP_TOKEN) head.set('authorization', `Bearer ${process.env.AIP_TOKEN}`);
  return head;
}

// Call is one call of a session, as its caller has it: it writes and reads whenever it likes.
export class Call {
  constructor(stream) {
    this.stream = stream;
    this.answers = stream[Symbol.asyncIterator]();
    this.status = new Promise((resolve) => stream.on('status', resolve));
    stream.on('error', () => {}); // which is the status as well
  }

  // say resolves when there is room for more, or the call has ended.
  say(message) {
    return Promise.race([new Promise((resolve) => this.stream.write(message, () => resolve())), this.status]);
  }

  // next returns the next answer. An error is what the call ended with.
  async next() {
    const { done, value } = await this.answers.next();
    if (done) throw new Error(`the call has ended: ${JSON.stringify(await this.status)}`);
    return value;
  }

  // rest returns the answers that are left, and the status behind them.
  async rest() {
    const all = [];
    try {
      for (let r = await this.answers.next(); !r.done; r = await this.answers.next()) all.push(r.value);
    } catch {
      // the status says the same
    }
    return { all, status: await this.status };
  }

  halfClose() {
    this.stream.end();
  }

  cancel() {
    this.stream.cancel();
  }
}

export const text = (s) => ({ text: s });
export const textOf = (message) => message.content.map((c) => c.text ?? '').join('');

// items returns content in a form that can be compared.
export const items = (content) => content.map((c) => ['text', 'image', 'audio', 'embedded'].filter((k) => c[k] != null && (c.data ?? k) === k).map((k) => [k, c[k]])[0] ?? []);
