import net from 'node:net';
import { once } from 'node:events';
import { inTime } from './agent.mjs';
import { events } from './events.mjs';
import { FetchAgent } from './fetch.mjs';

// EventSourceAgent hears by an EventSource, which comes back by itself with Last-Event-ID: Node's where it has one, else OwnSource. A line of its own
// leads it to an edge, as a balancer would, and to another one when it was cut.
export class EventSourceAgent extends FetchAgent {
  remembers = true;
  #line = new Line();

  async listen(edge) {
    const u = new URL(this.edges[edge]);
    this.#line.target = { host: u.hostname, port: Number(u.port) };
    if (this.source) return; // it comes back
    const Source = globalThis.EventSource ?? OwnSource;
    this.source = new Source(`http://127.0.0.1:${await this.#line.listen()}/a2a/events?agent=${this.id}`);
    this.source.onmessage = (e) => this.heard(e.lastEventId, e.data);
    await inTime('an open EventSource', new Promise((resolve) => { this.source.onopen = resolve; }));
  }

  cut() {
    super.cut();
    this.#line.cut();
  }

  close() {
    this.source?.close();
    this.#line.close();
  }
}

// Line is a TCP proxy that can be cut.
class Line {
  target = null;
  #sockets = new Set();
  #server = net.createServer((from) => {
    if (!this.target) return void from.destroy();
    const to = net.connect(this.target);
    for (const s of [from, to]) {
      this.#sockets.add(s);
      s.on('error', () => {}).on('close', () => {
        this.#sockets.delete(s);
        from.destroy();
        to.destroy();
      });
    }
    from.pipe(to).pipe(from);
  });

  async listen() {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return this.#server.address().port;
  }

  // cut breaks every connection, and lets none through until there is another target.
  cut() {
    this.target = null;
    for (const s of this.#sockets) s.destroy();
  }

  close() {
    this.cut();
    this.#server.close();
  }
}

// OwnSource is what a program writes that has no EventSource.
class OwnSource {
  #closed = new AbortController();
  #last = '';

  constructor(url) {
    this.#run(url).catch((err) => { if (!this.#closed.signal.aborted) throw err; });
  }

  async #run(url) {
    for (; !this.#closed.signal.aborted; await new Promise((resolve) => setTimeout(resolve, 50))) {
      try {
        await this.#once(url);
      } catch { /* it was cut: again */ }
    }
  }

  async #once(url) {
    const headers = { accept: 'text/event-stream' };
    if (this.#last) headers['last-event-id'] = this.#last;
    const r = await fetch(url, { headers, signal: this.#closed.signal });
    if (r.status !== 200) return;
    this.onopen?.();
    for await (const e of events(r.body)) {
      if (e.id) this.#last = e.id;
      if (!e.event) this.onmessage?.({ lastEventId: this.#last, data: e.data });
    }
  }

  close() {
    this.#closed.abort();
  }
}
