// Reads server-sent events, and keeps what has come until somebody asks for it.

/** Yields {id, data} for each event in chunks of text, which may be cut anywhere. Comments are left out. */
export async function* events(chunks) {
  let rest = '';
  for await (const chunk of chunks) {
    rest += chunk;
    for (let end; (end = rest.indexOf('\n\n')) >= 0; rest = rest.slice(end + 2)) {
      const fields = {};
      for (const line of rest.slice(0, end).split('\n')) {
        const colon = line.indexOf(': ');
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (fields.data !== undefined) yield { id: fields.id, envelope: JSON.parse(fields.data) };
    }
  }
}

/** A queue that whoever takes from waits for. After end, take gives undefined. */
export class Queue {
  #items = [];
  #waiting = [];
  put(item) {
    const waiter = this.#waiting.shift();
    if (waiter) waiter(item);
    else this.#items.push(item);
  }
  end() { this.put(undefined); }
  take() {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
