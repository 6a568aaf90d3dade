import WebSocket from 'ws';
import { Agent, Queue, Refusal, inTime } from './agent.mjs';

// What names an envelope in parent_id and is said of it; others belong to it alone, such as a call of a tool in its name.
const ANSWERS = new Set(['response', 'chunk', 'receipt']);

// SocketAgent says and hears by one WebSocket. It has a receipt of what it says.
export class SocketAgent extends Agent {
  #answers = new Map(); // by the id of the envelope: what is said of it

  async open({ say, hear, last }) {
    const edge = hear ?? say;
    const query = new URLSearchParams({ agent: this.id, receipts: 'stored' });
    if (last !== undefined) query.set('last_seq', last);
    const socket = new WebSocket(`${this.edges[edge].replace(/^http/, 'ws')}/a2a/ws?${query}`);
    this.socket = socket;
    socket.on('error', () => {}).on('message', (data) => this.#came(data.toString()));
    await inTime('an open WebSocket', new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject)));
  }

  #came(raw) {
    const e = JSON.parse(raw);
    const answers = this.#answers.get(e.header.parent_id);
    if (answers && ANSWERS.has(e.header.type === 'notification' ? e.payload.action : e.header.type)) answers.put(e);
    else this.heard(e.seq, raw);
  }

  // #send sends an envelope, and returns the queue of what is said of it.
  #send(id, text) {
    const answers = new Queue();
    this.#answers.set(id, answers);
    this.socket.send(text);
    return answers;
  }

  async say(envelope) {
    const e = await this.#send(envelope.id, envelope.text).take(`a receipt of ${envelope.id}`);
    this.#answers.delete(envelope.id);
    if (e.payload.error) throw new Refusal(undefined, e);
    if (e.payload.action !== 'receipt') throw new Error(`instead of a receipt came ${JSON.stringify(e)}`);
  }

  async *ask(envelope) {
    const answers = this.#send(envelope.id, envelope.text);
    for (;;) {
      const e = await answers.take(`the answer to ${envelope.id}`);
      if (e.payload?.error) throw new Refusal(undefined, e);
      if (e.payload?.action === 'receipt') continue;
      yield e;
      if (e.header.type === 'response') break;
    }
    this.#answers.delete(envelope.id);
  }

  // raw sends what may be no envelope, and returns what comes of it.
  async raw(text) {
    this.#answers.clear();
    this.socket.send(text);
    return this.next();
  }

  cut() {
    this.socket.terminate();
  }

  close() {
    this.socket?.close();
  }
}
