import { Agent, Refusal, inTime } from './agent.mjs';
import { events } from './events.mjs';

// HTTPAgent POSTs what it says, and has a downlink of server-sent events. request(edge, method, path, headers, body) is for who extends it: it
// returns {status, headers, pieces}; cut() breaks every connection.
export class HTTPAgent extends Agent {
  // open has the agent say at one edge, and hear at another one if it is named.
  async open({ say, hear, last }) {
    this.edge = say ?? hear;
    if (hear !== undefined) await this.listen(hear, last);
  }

  async listen(edge, last) {
    const headers = { accept: 'text/event-stream' };
    if (last !== undefined) headers['last-event-id'] = last;
    const answer = await this.request(edge, 'GET', `/a2a/events?agent=${this.id}`, headers);
    if (answer.status !== 200) throw new Refusal(answer.status, JSON.parse(await text(answer.pieces)));
    this.#hear(answer.pieces).catch(() => {}); // it was cut
  }

  async #hear(pieces) {
    for await (const e of events(pieces)) if (!e.event) this.heard(e.id, e.data);
  }

  // post POSTs an envelope, or what is to be one.
  async post(body, headers = {}, edge = this.edge) {
    const answer = await inTime('an answer', this.request(edge, 'POST', '/a2a', { 'content-type': 'application/json', ...headers }, body));
    if (answer.status >= 400) throw new Refusal(answer.status, JSON.parse(await text(answer.pieces)));
    return answer;
  }

  // say returns when the envelope is stored.
  async say(envelope) {
    const { status, pieces } = await this.post(envelope.text);
    if (status !== 202 || (await text(pieces)) !== '') throw new Error(`a notification is answered by ${status}`);
  }

  // ask returns the chunks of an answer, and then the response.
  async *ask(envelope) {
    const { pieces } = await this.post(envelope.text, { accept: 'text/event-stream, application/json' });
    yield* this.#parts(pieces);
  }

  async *#parts(pieces) {
    const all = [];
    async function* noted() {
      for await (const p of pieces) {
        all.push(p);
        yield p;
      }
    }
    let any = false;
    for await (const e of events(noted())) {
      any = true;
      const part = JSON.parse(e.data);
      if (part.payload?.error) throw new Refusal(undefined, part);
      yield part;
    }
    if (!any) yield JSON.parse(Buffer.concat(all).toString()); // it was answered at once
  }

  // answer asks for the response alone.
  async answer(envelope) {
    return JSON.parse(await text((await this.post(envelope.text)).pieces));
  }
}

export async function text(pieces) {
  const all = [];
  for await (const p of pieces) all.push(p);
  return Buffer.concat(all).toString();
}
