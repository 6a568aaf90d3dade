import { HTTPAgent } from './http.mjs';

// FetchAgent asks by fetch, and reads answers as streams.
export class FetchAgent extends HTTPAgent {
  #cut = new AbortController();

  async request(edge, method, path, headers, body) {
    const r = await fetch(this.edges[edge] + path, { method, headers, body, signal: this.#cut.signal });
    return { status: r.status, headers: Object.fromEntries(r.headers), pieces: r.body ?? [] };
  }

  cut() {
    this.#cut.abort();
    this.#cut = new AbortController();
  }
}
