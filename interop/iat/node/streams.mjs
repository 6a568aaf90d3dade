import assert from 'node:assert/strict';

// streams has one session of HTTP/2 carry a downlink, a registration, notifications and ten requests at once, which are answered by it too.
export async function streams({ enter }) {
  const bob = await enter('bob', { hear: 0 });
  await bob.register([]);
  const asked = [...Array(10).keys()].map((i) => bob.answer(bob.envelope('request', bob.id, { i })));
  await Promise.all([...Array(10).keys()].map((i) => bob.notify(bob.id, { note: i })));
  const notes = new Set();
  for (let i = 0; i < 20; i++) {
    const e = await bob.next();
    if (e.header.type === 'request') await bob.respond(e, { twice: 2 * e.payload.i });
    else notes.add(e.payload.note);
  }
  assert.deepEqual((await Promise.all(asked)).map((a) => a.payload.twice), [...Array(10).keys()].map((i) => 2 * i));
  assert.equal(notes.size, 10);
  assert.equal(bob.sessions, 1);
}
