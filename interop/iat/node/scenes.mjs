// What an agent of any connection can do, each by agents of its own at different edges. Names end in the tag of the run.
import assert from 'node:assert/strict';
import { Refusal, until } from './agent.mjs';

export const add = {
  name: 'add',
  description: 'adds two numbers',
  input_schema: { type: 'object', required: ['a', 'b'], properties: { a: { type: 'integer' }, b: { type: 'integer' } } },
};

export async function getJSON(url) {
  const r = await fetch(url);
  return { status: r.status, body: await r.json() };
}

// refused wants what is done to be refused, by a response of the cluster.
export async function refused(doing, { status, code, path }) {
  const err = await doing.then((r) => { throw new Error(`${JSON.stringify(r)} instead of ${code}`); }, (e) => e);
  if (!(err instanceof Refusal)) throw err;
  assert.equal(err.code, code, err.message);
  if (path !== undefined) assert.equal(err.path, path, err.message);
  if (err.status !== undefined) assert.equal(err.status, status, err.message);
  assert.equal(err.envelope.header.type, 'response');
  assert.equal(err.envelope.header.from, 'agora');
  return err;
}

export const scenes = {
  async register({ enter, edges }) {
    const bob = await enter('bob', { hear: 0 });
    const answer = await bob.register([add]);
    assert.equal(answer.header.type, 'response');
    assert.equal(answer.payload.status, 'registered');
    let found;
    await until('another edge finds the tool', async () => {
      found = (await getJSON(`${edges[1]}/a2a/tools?name=add&agent=${bob.id}`)).body.tools;
      return found.length === 1;
    });
    assert.deepEqual(found[0], { agent: bob.id, ...add });
    const { body } = await getJSON(`${edges[2]}/a2a/manifest?agent=${bob.id}`);
    assert.deepEqual(body.tools, [add]);
  },

  async notify({ enter }) {
    const bob = await enter('bob', { hear: 0 });
    const al = await enter('al', { say: 1 });
    const payload = '{ "text" : "ü\\u00fc \\ud83d\\ude00",\t"n":1.0e2,"big":12345678901234567890, "half":"\\ud83d" }';
    const first = al.envelope('notification', bob.id, payload, { metadata: { ttl: 3 } });
    await al.say(first);
    await al.say(first); // which does not know that it was stored
    for (let i = 0; i < 20; i++) await al.notify(bob.id, { action: 'log', level: 'info', message: `m${i}` });
    const got = await bob.next();
    assert.ok(got.raw.includes(`"payload":${payload}`), got.raw);
    assert.equal(got.metadata.ttl, 2);
    assert.equal(got.header.from, al.id);
    for (let i = 0; i < 20; i++) assert.equal((await bob.next()).payload.message, `m${i}`);
  },

  async ask({ enter }) {
    const bob = await enter('bob', { hear: 0, say: 1 });
    const carol = await enter('carol', { say: 2 });
    const working = (async () => {
      const request = await bob.next();
      assert.deepEqual([request.header.type, request.payload.query], ['request', 'tidy']);
      for (let i = 0; i < 20; i++) await bob.chunk(request, `piece ${i}`);
      await bob.respond(request, { action: 'done', result_summary: 'tidied' });
    })();
    const question = carol.envelope('request', bob.id, { action: 'execute', query: 'tidy' }, { metadata: { deadline_ms: 60000 } });
    const parts = [];
    for await (const part of carol.ask(question)) parts.push(part);
    await working;
    assert.deepEqual(parts.map((p) => p.payload.text ?? p.payload.result_summary), [...Array(20).keys()].map((i) => `piece ${i}`).concat('tidied'));
    for (const p of parts) assert.deepEqual([p.header.parent_id, p.header.from, p.header.to], [question.id, bob.id, carol.id]);
    assert.equal(parts.at(-1).header.type, 'response');
  },

  async tools({ enter }) {
    const bob = await enter('bob', { hear: 0, say: 1 });
    const al = await enter('al', { hear: 1, say: 2 });
    await bob.register([add]);
    const call = (as, to, tool_name, args, more) => as.answer(as.envelope('request', to, { action: 'call_tool', tool_name, arguments: args }, more));
    await refused(call(al, bob.id, 'add', { a: 1, b: 'two' }), { status: 400, code: 'INVALID_REQUEST', path: '/payload/arguments/b' });
    await refused(call(al, bob.id, 'subtract', {}), { status: 404, code: 'NOT_FOUND' });
    const called = call(al, bob.id, 'add', { a: 1, b: 2 });
    const request = await bob.next();
    await bob.respond(request, { sum: request.payload.arguments.a + request.payload.arguments.b });
    assert.equal((await called).payload.sum, 3);
    // what is done for bob may call what bob allows, and nothing else
    await al.register([add, { name: 'erase' }]);
    const task = bob.answer(bob.envelope('request', al.id, { action: 'execute', query: 'count', allowed_tools: ['add'] }));
    const given = await al.next();
    const parent = { parent: given.header.msg_id };
    await bob.register([add, { name: 'erase' }]);
    await refused(call(al, bob.id, 'erase', {}, parent), { status: 403, code: 'FORBIDDEN' });
    await al.respond(given, {});
    await task;
  },

  async approval({ enter, edges }) {
    const bob = await enter('bob', { hear: 0, say: 1 });
    const boss = await enter('boss', { hear: 2 });
    const question = bob.envelope('request', boss.id, { action: 'require_approval', what: 'erase everything' });
    const answered = bob.answer(question);
    let waiting;
    await until('the approval is listed', async () => {
      waiting = (await getJSON(`${edges[2]}/a2a/approvals?state=pending&agent=${bob.id}`)).body.approvals;
      return waiting.length === 1;
    });
    assert.deepEqual([waiting[0].id, waiting[0].to, waiting[0].payload.what], [question.id, boss.id, 'erase everything']);
    const decide = async (edge, as, body) => {
      const r = await fetch(`${edges[edge]}/a2a/approvals/${question.id}?agent=${bob.id}&as=${as}`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
      });
      const decided = await r.json();
      if (r.status >= 400) throw new Refusal(r.status, decided);
      return decided;
    };
    await refused(decide(0, bob.id, { approved: true }), { status: 403, code: 'FORBIDDEN' });
    await refused(decide(0, boss.id, { approved: 'yes' }), { status: 400, code: 'INVALID_REQUEST' });
    const decided = await decide(1, boss.id, { approved: true, note: 'go on' });
    assert.deepEqual([decided.state, decided.by, decided.note], ['approved', boss.id, 'go on']);
    await refused(decide(2, boss.id, { approved: false }), { status: 409, code: 'INVALID_REQUEST' });
    assert.equal((await answered).payload.approved, true);
    assert.equal((await getJSON(`${edges[0]}/a2a/approvals/nobody-asked`)).status, 404);
  },

  async resume({ enter }) {
    const bob = await enter('bob', { hear: 0 });
    const al = await enter('al', { say: 1 });
    const say = async (...texts) => { for (const text of texts) await al.notify(bob.id, { text }); };
    await say('1', '2', '3');
    const had = [await bob.next(), await bob.next(), await bob.next()];
    bob.cut();
    await say('4', '5');
    const again = bob.remembers ? had[2] : had[1]; // who knows only the second hears the third again
    await bob.open({ hear: 2, last: again.seq });
    await say('6');
    const texts = [];
    while (texts.at(-1) !== '6') texts.push((await bob.next()).payload.text);
    assert.deepEqual(texts, bob.remembers ? ['4', '5', '6'] : ['3', '4', '5', '6']);
    assert.deepEqual(had.map((e) => e.payload.text), ['1', '2', '3']);
  },

  async errors({ enter }) {
    const bob = await enter('bob', { hear: 0 });
    const al = await enter('al', { say: 1 });
    const good = { header: { msg_id: 'm', type: 'notification', from: al.id, to: bob.id }, payload: {} };
    const header = (h) => JSON.stringify({ ...good, header: { ...good.header, ...h } });
    const bad = [
      ['', 400, 'INVALID_REQUEST'],
      ['{"header":', 400, 'INVALID_REQUEST'],
      ['[]', 400, 'INVALID_REQUEST'],
      [header({ msg_id: undefined }), 400, 'INVALID_REQUEST', '/header/msg_id'],
      [header({ msg_id: 7 }), 400, 'INVALID_REQUEST', '/header/msg_id'],
      [header({ type: 'shout' }), 400, 'INVALID_REQUEST', '/header/type'],
      [header({ to: undefined }), 400, 'INVALID_REQUEST', '/header/to'],
      [header({ type: 'response' }), 400, 'INVALID_REQUEST', '/header/parent_id'],
      [JSON.stringify({ ...good, metadata: { ttl: 0 } }), 400, 'INVALID_REQUEST', '/metadata/ttl'],
      [JSON.stringify({ ...good, payload: { action: 'think' } }), 400, 'INVALID_REQUEST', '/payload/thought_text'],
      [header({ to: `nobody-${al.id}` }), 404, 'AGENT_NOT_FOUND'],
      [JSON.stringify({ ...good, payload: 'x'.repeat(1 << 20) }), 413, 'MESSAGE_TOO_LARGE'],
    ];
    const said = al.raw ? async (text) => { throw new Refusal(undefined, await al.raw(text)); } : (text) => al.post(text);
    for (const [text, status, code, path] of bad) await refused(said(text), { status, code, path });
    await al.notify(bob.id, { last: true }); // and it goes on
    assert.equal((await bob.next()).payload.last, true);
    if (!al.request) return;
    const status = async (method, path, headers, body) => {
      const { status, pieces } = await al.request(1, method, path, headers, body);
      let b = '';
      for await (const p of pieces) b += Buffer.from(p);
      assert.equal(JSON.parse(b).header.type, 'response', b);
      return status;
    };
    assert.equal(await status('PUT', '/a2a', {}, '{}'), 405);
    assert.equal(await status('POST', '/a2a', { 'content-type': 'text/xml' }, '{}'), 415);
    assert.equal(await status('GET', '/a2a/nothing', {}), 404);
    assert.equal(await status('GET', '/a2a/events', {}), 400);
    assert.equal(await status('GET', '/a2a/events?agent=x', { 'last-event-id': 'x' }), 400);
  },
};
