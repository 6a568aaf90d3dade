// events reads server-sent events from pieces of their bytes, as the WHATWG specification of HTML says.
export async function* events(pieces) {
  const decoder = new TextDecoder();
  let rest = '';
  let event = { data: [] };
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data.length > 0) yield { ...event, data: event.data.join('\n') };
        event = { data: [] };
        continue;
      }
      const colon = line.indexOf(':');
      if (colon === 0) continue; // a comment
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'data') event.data.push(value);
      else event[field] = value;
    }
  }
}
