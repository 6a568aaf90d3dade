// An agent of the IAT dialect, whatever it is connected by: what it hears waits in a queue, and what it says has ids of its own.

const patience = 60_000; // milliseconds that anything may take

// Refusal is what an edge answers to what it does not take: an envelope, over HTTP with a status.
export class Refusal extends Error {
  constructor(status, envelope) {
    const { code, message, path } = envelope.payload?.error ?? {};
    super(`${status} ${code} ${path ?? ''} ${message}`);
    Object.assign(this, { status, envelope, code, path });
  }
}

// Queue has what is put into it taken in order.
export class Queue {
  #items = [];
  #waiting = [];

  put(item) {
    const next = this.#waiting.shift();
    if (next) next(item);
    else this.#items.push(item);
  }

  take(what) {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift());
    return inTime(what, new Promise((resolve) => this.#waiting.push(resolve)));
  }
}

// inTime fails where a promise is not kept.
export function inTime(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// until waits until a condition holds.
export async function until(what, holds) {
  for (const end = Date.now() + patience; ;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Agent {
  inbox = new Queue();
  #said = 0;

  remembers = false; // whether it comes back by itself, with what it had last

  constructor(id, edges) {
    this.id = id;
    this.edges = edges;
  }

  // envelope returns one that the agent has not said yet. A payload that is a string goes as it is spelled.
  envelope(type, to, payload, { parent, id, metadata } = {}) {
    const header = { msg_id: id ?? `${this.id}-${++this.#said}`, parent_id: parent, type, from: this.id, to };
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const data = metadata ? `,"metadata":${JSON.stringify(metadata)}` : '';
    return { id: header.msg_id, text: `{"header":${JSON.stringify(header)}${data},"payload":${body}}` };
  }

  // heard takes what came by the downlink.
  heard(seq, raw) {
    this.inbox.put({ seq, raw, ...JSON.parse(raw) });
  }

  // next returns what was heard next.
  next() {
    return this.inbox.take(`an envelope for ${this.id}`);
  }

  notify(to, payload, more) {
    return this.say(this.envelope('notification', to, payload, more));
  }

  chunk(request, text) {
    return this.say(this.envelope('chunk', request.header.from, { text }, { parent: request.header.msg_id }));
  }

  respond(request, payload) {
    return this.say(this.envelope('response', request.header.from, payload, { parent: request.header.msg_id }));
  }

  // answer asks, and returns the response.
  async answer(envelope) {
    let last;
    for await (const part of this.ask(envelope)) last = part;
    return last;
  }

  register(tools) {
    return this.answer(this.envelope('request', undefined, { action: 'register', agent: this.id, tools }));
  }
}
