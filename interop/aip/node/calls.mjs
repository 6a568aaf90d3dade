// Calls of nodes that may be of another language: sessions with the agent, and calls of tools of the toolbox.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { retryAfter } from './details.mjs';
import { is, refused, until } from './expect.mjs';
import { items, text, textOf } from './gateway.mjs';

// session returns what makes messages of a session with the agent of a peer.
const session = (peer, session_id, more = {}) => (session_status, ...content) =>
  ({ sender_id: 'caller', receiver_id: `agent-${peer}`, session_id, session_status, content, ...more });

const every = Buffer.from([...Array(256).keys()]); // byte

async function json(answer) {
  return JSON.parse(textOf(await answer));
}

export const calls = {
  // Both speak at once, and content comes back as it is.
  async talk({ gateways, tag, peer }) {
    for (const g of gateways) {
      const call = g.call();
      assert.ok((await g.nodes()).has(`agent-${peer}`)); // the session stays empty meanwhile
      const m = session(peer, `s-${tag}`, { task_info: { task_id: 't', parent_task_ids: ['t0', 't1'], task_status: 'EXECUTING' } });
      const quests = [m('START_QUEST', text('ü😀'), { image: every }, { audio: Buffer.alloc(0) }, { embedded: randomBytes(1 << 20) })];
      for (let i = 0; i < 50; i++) quests.push(m('HOLD_QUEST', text(`${i}`), { embedded: randomBytes(20000) }));
      quests.push(m('STOP_QUEST', text('bye')));
      quests.forEach((q, i) => (q.message_id = `m${i}`));
      const saying = (async () => {
        for (const q of quests) await call.say(q);
      })();
      const { all, status } = await call.rest();
      await saying;
      is(status, 'OK', '');
      assert.equal(all.length, quests.length);
      all.forEach((a, i) => {
        const { sender_id, receiver_id, session_id, message_id, task_info, content } = quests[i];
        assert.deepEqual(
          [a.session_status, a.sender_id, a.receiver_id, a.session_id, a.reply_to_message_id, a.task_info],
          [i + 1 < all.length ? 'HOLD_RESPONSE' : 'STOP_RESPONSE', receiver_id, sender_id, session_id, message_id, task_info],
        );
        assert.deepEqual(items(a.content), items(content));
      });
    }
  },

  // What is said waits for the answer to what was said before, in sessions that are interleaved.
  async turns({ gateways, tag, peer }) {
    await Promise.all([...Array(10).keys()].map(async (k) => {
      const call = gateways[k % gateways.length].call();
      const m = session(peer, `s-${tag}-${k}`);
      await call.say(m('START_QUEST', text('count 5')));
      for (let i = 0; i < 5; i++) assert.equal(textOf(await call.next()), `${i}`);
      for (let i = 0; i < 10; i++) {
        await call.say(m('HOLD_QUEST', text(`${k} ${i}`)));
        assert.equal(textOf(await call.next()), `${k} ${i}`);
      }
      await call.say(m('STOP_QUEST'));
      const { all, status } = await call.rest();
      assert.deepEqual(all.map((a) => a.session_status), ['STOP_RESPONSE']);
      is(status, 'OK');
    }));
  },

  async large({ gateways, tag, peer }) {
    const call = gateways[2].call();
    const m = session(peer, `s-${tag}`);
    const body = randomBytes(12 << 20);
    await call.say(m('START_QUEST', { image: body }));
    assert.ok((await call.next()).content[0].image.equals(body));
    await call.say(m('HOLD_QUEST', { embedded: Buffer.alloc((16 << 20) + 1) }));
    is((await call.rest()).status, 'RESOURCE_EXHAUSTED');
    assert.ok((await gateways[2].nodes()).has(`agent-${peer}`));
  },

  // What is no session is refused in the words of the protocol.
  async refusals({ gateways, tag, peer }) {
    const m = session(peer, `s-${tag}`);
    const start = m('START_QUEST');
    for (const [code, words, ...said] of [
      ['ABORTED', 'Empty request stream'],
      ['INVALID_ARGUMENT', 'First message must be START_QUEST', m('HOLD_QUEST')],
      ['INVALID_ARGUMENT', 'Missing session_id in START_QUEST', { ...start, session_id: '' }],
      ['NOT_FOUND', 'Receiver not found', { ...start, receiver_id: `nobody-${tag}` }],
      ['INVALID_ARGUMENT', undefined, start, { ...m('HOLD_QUEST'), session_id: 'another' }],
      ['INVALID_ARGUMENT', undefined, start, { ...m('HOLD_QUEST'), sender_id: 'another' }],
      ['INVALID_ARGUMENT', undefined, start, start],
    ]) {
      const call = gateways[1].call();
      for (const q of said) await call.say(q);
      if (said.length === 0) call.halfClose();
      is((await call.rest()).status, code, words);
    }
    await refused(gateways[2].tool(`nobody-${tag}`, 'add', '{}'), 'NOT_FOUND', 'Receiver not found');
    await refused(gateways[2].tool(`agent-${peer}`, 'add', '{}'), 'NOT_FOUND');
  },

  // A node's own status passes, with what it says of trying again.
  async statuses({ gateways, tag, peer }) {
    for (const code of ['INVALID_ARGUMENT', 'NOT_FOUND', 'FAILED_PRECONDITION', 'RESOURCE_EXHAUSTED', 'PERMISSION_DENIED', 'ABORTED', 'OUT_OF_RANGE']) {
      for (const [does, answers] of [['fail', []], ['answer', [['HOLD_RESPONSE', 'so far'], ['STOP_RESPONSE', `it fails: ${code}`]]]]) {
        const call = gateways[2].call();
        await call.say(session(peer, `s-${tag}`)('START_QUEST', text(`${does} ${code}`)));
        const { all, status } = await call.rest();
        is(status, code, `it fails: ${code}`);
        assert.equal(retryAfter(status), 1.5);
        assert.deepEqual(all.map((a) => [a.session_status, textOf(a)]), answers);
      }
    }
    const status = await refused(gateways[1].tool(`toolbox-${peer}`, 'fail', '{"code":"INTERNAL"}'), 'INTERNAL', 'it fails: INTERNAL');
    assert.equal(retryAfter(status), 2);
    for (const id of [`agent-${peer}`, `toolbox-${peer}`]) assert.ok((await gateways[0].nodes()).has(id));
  },

  // Giving up, and a deadline, reach the node.
  async giveUp({ gateways, tag, peer }) {
    const cancelled = async (session_id) => assert.equal(textOf(await gateways[1].tool(`toolbox-${peer}`, 'cancelled', JSON.stringify({ session: session_id }))), 'cancelled');
    const call = gateways[2].call();
    await call.say(session(peer, `s-${tag}`)('START_QUEST', text('hang')));
    assert.equal(textOf(await call.next()), 'hanging, timed false');
    call.cancel();
    is((await call.rest()).status, 'CANCELLED');
    await cancelled(`s-${tag}`);
    let seconds = 1;
    await until('the node has answered before a deadline that passes', async () => {
      const timed = gateways[2].call({ deadline: Date.now() + seconds * 1000 });
      await timed.say(session(peer, `s-${tag}-${seconds}`)('START_QUEST', text('hang')));
      const { all, status } = await timed.rest();
      is(status, 'DEADLINE_EXCEEDED');
      if (all.length > 0) assert.equal(textOf(all[0]), 'hanging, timed true');
      else seconds *= 2;
      return all.length > 0;
    });
    await cancelled(`s-${tag}-${seconds}`);
    await refused(gateways[1].tool(`toolbox-${peer}`, 'hang', '{}', { deadline: Date.now() + 500 }), 'DEADLINE_EXCEEDED');
    assert.ok((await gateways[0].nodes()).has(`agent-${peer}`));
  },

  async tools({ gateways, peer }) {
    const box = `toolbox-${peer}`;
    for (const g of gateways) {
      assert.equal(await json(g.tool(box, 'add', '{"a": 20, "b": 22}')), 42);
      const args = '{ "text" : "ü\\u00fc", "n":1.0e2 }';
      const answer = await g.tool(box, 'echo', args, { session: 's7' });
      assert.deepEqual([answer.sender_id, answer.receiver_id, answer.session_id, textOf(answer), answer.is_error], [box, 'caller', 's7', args, false]);
      assert.deepEqual(items((await g.tool(box, 'bytes', '{"n":256}')).content), [['image', every]]);
      const wrong = await g.tool(box, 'wrong', '{}');
      assert.deepEqual([wrong.is_error, wrong.error_message], [true, 'it is wrong']);
    }
    await refused(gateways[0].tool(box, 'none', '{}'), 'NOT_FOUND');
  },

  // The peer is an agent of a WebSocket, with a tool that adds one.
  async foreign({ gateways, tag, peer }) {
    for (const g of gateways.slice(1)) {
      const { agent_info } = (await g.nodes()).get(peer);
      assert.deepEqual([agent_info.address, agent_info.skills], [g.address, [{ skill_id: 'next', capability: 'adds one' }]]);
    }
    const m = session(peer, `s-${tag}`, { receiver_id: peer });
    const call = gateways[2].call();
    await call.say(m('START_QUEST', text('{ "do" : "it" }')));
    await call.say(m('HOLD_QUEST', text('one'), { image: every }));
    await call.say(m('HOLD_QUEST', text('two')));
    const got = [];
    while (got.at(-1) !== 'last') got.push(textOf(await call.next()));
    assert.deepEqual(got.filter((s) => s), ['it was said', 'one image', 'last']);
    await call.say(m('STOP_QUEST'));
    const { all, status } = await call.rest();
    is(status, 'OK');
    assert.deepEqual(all.map((a) => [a.session_status, a.sender_id, items(a.content)]), [['STOP_RESPONSE', peer, [['image', every]]]]);
    assert.equal(await json(gateways[1].tool(peer, 'next', '{"n": 41}')), 42);
    await refused(gateways[1].tool(peer, 'next', '{"n": "x"}'), 'INVALID_ARGUMENT');
    await refused(gateways[1].tool(peer, 'none', '{}'), 'NOT_FOUND');
  },

  // The edge takes one call of each caller at a time for an agent, and two of all.
  async busy({ gateways, tag, peer }) {
    const call = (n, sender_id) => {
      const c = gateways[1].call();
      return c.say(session(peer, `s-${tag}-${n}`, { sender_id })('START_QUEST', text('hang'))).then(() => c);
    };
    const held = [];
    for (const sender of ['caller', 'another']) {
      held.push(await call(held.length, sender));
      await held.at(-1).next();
    }
    for (const sender of ['caller', 'third']) {
      const { status } = await (await call(sender, sender)).rest();
      is(status, 'RESOURCE_EXHAUSTED');
      assert.equal(retryAfter(status), 1);
    }
    for (const c of held) {
      c.cancel();
      await c.rest();
    }
  },

  // The program has a token, for some agents.
  async token({ gateways, peer }) {
    const bare = new Promise((resolve) => gateways[0].client.GetNodes({}, resolve));
    is(await bare, 'UNAUTHENTICATED');
    await refused(gateways[1].ask('Heartbeat', { sender_id: 'stranger' }), 'PERMISSION_DENIED');
    await refused(gateways[1].tool(`toolbox-${peer}`, 'add', '{}', { from: 'stranger' }), 'PERMISSION_DENIED');
  },
};
