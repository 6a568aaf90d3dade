// What scenes expect, and wait for.
import assert from 'node:assert/strict';
import grpc from '@grpc/grpc-js';

// until waits for what must come true, for two minutes if need be.
export async function until(what, holds) {
  for (const end = Date.now() + 120000; Date.now() < end; await new Promise((r) => setTimeout(r, 50))) {
    if (await holds()) return;
  }
  throw new Error(`not within two minutes: ${what}`);
}

// is expects a status. Any text will do where none is given.
export function is(status, code, text) {
  assert.deepEqual([grpc.status[status.code], text === undefined ? undefined : status.details], [code, text], `${status.code} ${status.details}`);
}

// refused expects what is asked to be refused, and returns the status.
export async function refused(asked, code, text) {
  const status = await asked.then((answer) => assert.fail(`${JSON.stringify(answer)} instead of ${code}`), (err) => err);
  is(status, code, text);
  return status;
}
