import http2 from 'node:http2';
import { once } from 'node:events';
import { HTTPAgent } from './http.mjs';

// HTTP2Agent has one session to each edge, without TLS by prior knowledge; its requests are streams of it.
export class HTTP2Agent extends HTTPAgent {
  #sessions = new Map();

  #session(edge) {
    let s = this.#sessions.get(edge);
    if (!s || s.closed || s.destroyed) {
      s = http2.connect(this.edges[edge]);
      s.on('error', () => {}); // its streams tell
      this.#sessions.set(edge, s);
    }
    return s;
  }

  get sessions() {
    return this.#sessions.size;
  }

  async request(edge, method, path, headers, body) {
    const stream = this.#session(edge).request({ ':method': method, ':path': path, ...headers }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
    const [answer] = await once(stream, 'response');
    return { status: answer[':status'], headers: answer, pieces: stream };
  }

  cut() {
    for (const s of this.#sessions.values()) s.destroy();
    this.#sessions.clear();
  }
}
