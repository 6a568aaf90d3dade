// Plays the steps of the IAT door by clients of Node: node node.mjs http2|fetch|ws EDGE EDGE. It prints "ok STEP" for each.
import assert from 'node:assert/strict';
import { byFetch, downlink, overHTTP2, socket, text } from './transports.mjs';
import { events } from './sse.mjs';

const [kind, near, far] = process.argv.slice(2);
const al = `al-node-${kind}`, bob = `bob-node-${kind}`;
const ok = (step) => console.log('ok', step);

const envelope = (type, id, from, to, payload, parent) => ({ header: { msg_id: id, ...(parent && { parent_id: parent }), type, from, to }, payload });
const log = (id) => envelope('notification', id, al, bob, { action: 'log', level: 'info', message: `hello ${id} é` });
const task = envelope('request', 'r1', al, bob, { action: 'execute', query: 'count' });
const answers = [
  envelope('chunk', 'c1', bob, al, { text: 'one ' }, 'r1'), envelope('chunk', 'c2', bob, al, { text: 'two' }, 'r1'),
  envelope('response', 'c3', bob, al, { status: 'success' }, 'r1'),
];
const nonsense = envelope('nonsense', 'x1', al, bob, {});

/** Asserts that an envelope is what was said, whatever the edge has added to metadata. */
const same = (got, want) => assert.deepEqual({ header: got.header, payload: got.payload }, want);

/** Asserts that an envelope says what is wrong with the nonsense. */
function refuses(got) {
  const { parent_id, type, from, to } = got.header;
  assert.deepEqual({ parent_id, type, from, to }, { parent_id: 'x1', type: 'response', from: 'agora', to: al });
  assert.equal(got.payload.error.code, 'INVALID_REQUEST');
  assert.equal(got.payload.error.path, '/header/type');
}

async function taken(answer) {
  const got = await answer;
  assert.deepEqual([got.status, await text(got)], [202, '']);
}

async function overHTTP(client) {
  let down = await downlink(client, far, bob);
  await taken(client.post(near, log('n1')));
  let event = await down.next();
  assert.match(event.id, /^[1-9][0-9]*$/);
  assert.deepEqual(event.envelope, log('n1'));
  ok('notification');

  const asked = client.post(near, task, { accept: 'text/event-stream' });
  event = await down.next();
  same(event.envelope, task);
  for (const a of answers) await taken(client.post(far, a));
  const answer = await asked;
  assert.deepEqual([answer.status, answer.type], [200, 'text/event-stream']);
  const got = [];
  for await (const e of events(answer.chunks)) got.push(e.envelope);
  assert.equal(got.length, answers.length);
  got.forEach((g, i) => same(g, answers[i]));
  ok('request');

  down.close();
  for (const id of ['n2', 'n3']) await taken(client.post(far, log(id)));
  down = await downlink(client, near, bob, { last: event.id, token: down.token });
  for (const id of ['n2', 'n3']) {
    const next = await down.next();
    same(next.envelope, log(id));
    assert(Number(next.id) > Number(event.id), `${next.id} comes after ${event.id}`);
    event = next;
  }
  down.close();
  ok('resume');

  const refused = await client.post(near, nonsense);
  assert.deepEqual([refused.status, refused.type], [400, 'application/json']);
  refuses(JSON.parse(await text(refused)));
  ok('refusal');
  client.end();
}

async function overWebSocket() {
  const host = await socket(near, al);
  let sub = await socket(far, bob);
  host.say(log('n1'));
  let heard = await sub.next();
  same(heard, log('n1'));
  ok('notification');

  host.say(task);
  heard = await sub.next();
  same(heard, task);
  for (const a of answers) sub.say(a);
  for (const a of answers) same(await host.next(), a);
  ok('request');

  const last = heard.seq;
  assert(Number.isInteger(last) && last > 0, `seq is ${last}`);
  await sub.close(4000);
  for (const id of ['n2', 'n3']) host.say(log(id));
  let first;
  do { // the other edge may not have let go yet
    sub = await socket(near, bob, last);
    first = await sub.next();
  } while (first.payload.error?.code === 'AGENT_EXISTS');
  same(first, log('n2'));
  same(await sub.next(), log('n3'));
  ok('resume');

  host.say(nonsense);
  refuses(await host.next());
  ok('refusal');
  await Promise.all([host.close(1000), sub.close(1000)]);
}

const plays = { http2: () => overHTTP(overHTTP2()), fetch: () => overHTTP(byFetch()), ws: overWebSocket };
try {
  await plays[kind]();
} catch (fault) {
  console.error(`${kind}: ${fault.stack}`);
  process.exit(1);
}
