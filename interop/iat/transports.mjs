// The clients of Node: each posts envelopes and opens downlinks, by a library that comes with Node or, for WebSocket, by ws.
import http2 from 'node:http2';
import { createRequire } from 'node:module';
import { events, Queue } from './sse.mjs';

const accept = 'text/event-stream';

/** HTTP/2 without TLS: one session for each edge carries what is posted and what is heard. */
export function overHTTP2() {
  const sessions = new Map();
  const session = (edge) => {
    if (!sessions.has(edge)) sessions.set(edge, http2.connect(edge));
    return sessions.get(edge);
  };
  const request = async (edge, headers, body) => {
    const stream = session(edge).request(headers);
    stream.setEncoding('utf8');
    stream.end(body);
    const got = await new Promise((resolve, reject) => stream.on('response', resolve).on('error', reject));
    return { status: got[':status'], type: got['content-type'], token: got['agora-resume-token'], chunks: stream, stop: () => stream.close(http2.constants.NGHTTP2_CANCEL) };
  };
  return {
    post: (edge, envelope, headers) => request(edge, { ':method': 'POST', ':path': '/a2a', 'content-type': 'application/json', ...headers }, JSON.stringify(envelope)),
    get: (edge, path, headers) => request(edge, { ':path': path, ...headers }),
    end: () => sessions.forEach((s) => s.destroy()),
  };
}

/** The fetch that comes with Node. */
export function byFetch() {
  const request = async (url, options) => {
    const gone = new AbortController();
    const got = await fetch(url, { ...options, signal: gone.signal });
    const chunks = got.body ? got.body.pipeThrough(new TextDecoderStream()) : [];
    return { status: got.status, type: got.headers.get('content-type'), token: got.headers.get('agora-resume-token'), chunks, stop: () => gone.abort() };
  };
  return {
    post: (edge, envelope, headers) => request(edge + '/a2a', { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(envelope) }),
    get: (edge, path, headers) => request(edge + path, { headers }),
    end: () => {},
  };
}

/** Opens the downlink of an agent; next gives its next event. */
export async function downlink(client, edge, agent, { last, token } = {}) {
  const headers = { accept };
  if (last) headers['last-event-id'] = last;
  const got = await client.get(edge, `/a2a/events?agent=${agent}` + (token ? `&resume_token=${token}` : ''), headers);
  if (got.status !== 200 || got.type !== accept) throw new Error(`the downlink was answered by ${got.status} ${got.type}`);
  const all = events(got.chunks);
  return { token: got.token, next: async () => (await all.next()).value, close: got.stop };
}

/** All text of an answer. */
export async function text(answer) {
  let all = '';
  for await (const chunk of answer.chunks) all += chunk;
  return all;
}

/** Opens a WebSocket of an agent, by Node's own client where it has one, else by ws. */
export async function socket(edge, agent, last) {
  const WebSocket = globalThis.WebSocket ?? createRequire(process.env.AGORA_INTEROP_MODULES + '/')('ws');
  const s = new WebSocket(`${edge.replace('http', 'ws')}/a2a/ws?agent=${agent}` + (last ? `&last_seq=${last}` : ''));
  const heard = new Queue();
  s.addEventListener('message', (m) => heard.put(JSON.parse(m.data)));
  const closed = new Promise((resolve) => s.addEventListener('close', (e) => { heard.end(); resolve(e.code); }));
  await new Promise((resolve, reject) => {
    s.addEventListener('open', resolve);
    s.addEventListener('error', (e) => reject(new Error(`no WebSocket at ${edge}: ${e.message}`)));
  });
  return { say: (envelope) => s.send(JSON.stringify(envelope)), next: () => heard.take(), close: (code) => { s.close(code); return closed; } };
}
