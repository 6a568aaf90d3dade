// A host and a sub-agent, each of which may be of another language: the host has it tidy, allows it one tool, and approves what it asks for.
import assert from 'node:assert/strict';
import { until } from './agent.mjs';
import { add, getJSON, refused } from './scenes.mjs';

export async function subagent({ enter, tag }) {
  const me = await enter('sub', { hear: 0, say: 1 });
  await me.register([]);
  console.log('ready');
  const task = await me.next();
  const host = task.header.from;
  assert.deepEqual([task.payload.action, task.payload.query], ['execute', `tidy ${tag} ü😀`]);
  await me.notify(host, { action: 'think', thought_text: 'hm' });
  const call = (tool_name, args) => me.envelope('request', host, { action: 'call_tool', tool_name, arguments: args }, { parent: task.header.msg_id });
  const { payload } = await me.answer(call('add', { a: 20, b: 22 }));
  await refused(me.answer(call('add', { a: 20, b: 'x' })), { status: 400, code: 'INVALID_REQUEST', path: '/payload/arguments/b' });
  await refused(me.answer(call('erase', {})), { status: 403, code: 'FORBIDDEN' });
  const approval = await me.answer(me.envelope('request', host, { action: 'require_approval', what: 'erase' }));
  assert.equal(approval.payload.approved, true);
  for (let i = 0; i < 10; i++) await me.chunk(task, `${i} ü😀`);
  await me.respond(task, { action: 'done', result_summary: `sum ${payload.sum}`, usage_stats: { chunks: 10 } });
}

export async function host({ enter, edges, tag }) {
  const me = await enter('host', { hear: 2 });
  await me.register([add, { name: 'erase' }]);
  const heard = [];
  const serving = (async () => {
    heard.push((await me.next()).payload.thought_text);
    const call = await me.next();
    await me.respond(call, { sum: call.payload.arguments.a + call.payload.arguments.b });
  })();
  const approving = (async () => {
    let all = [];
    await until('the sub-agent asks for approval', async () => {
      all = (await getJSON(`${edges[1]}/a2a/approvals?state=pending&to=${me.id}`)).body.approvals;
      return all.length > 0;
    });
    const r = await fetch(`${edges[0]}/a2a/approvals/${all[0].id}?agent=${all[0].agent}&as=${me.id}`, { method: 'POST', body: '{"approved":true}', headers: { 'content-type': 'application/json' } });
    assert.equal(r.status, 200);
  })();
  const task = me.envelope('request', `sub-${tag}`, { action: 'execute', query: `tidy ${tag} ü😀`, allowed_tools: ['add'] });
  const parts = [];
  for await (const p of me.ask(task)) parts.push(p.payload.text ?? p.payload.result_summary);
  await Promise.all([serving, approving]);
  assert.deepEqual(heard, ['hm']);
  assert.deepEqual(parts, [...Array(10).keys()].map((i) => `${i} ü😀`).concat('sum 42'));
}
