// node run.mjs SCENE,… TAG PEER EDGE…: plays scenes with nodes whose ids end in TAG, against those that end in PEER. Its status says how that went.
import { once } from 'node:events';
import { Gateway } from './gateway.mjs';
import { serve } from './nodes.mjs';
import { calls } from './calls.mjs';
import { gateway } from './foreign.mjs';
import { registry } from './registry.mjs';

const [names, tag, peer, ...edges] = process.argv.slice(2);
const gateways = edges.map((address) => new Gateway(address));

// served serves until there is nothing more to read.
async function served() {
  const { stop } = await serve(gateways, tag, `interop-${tag}`);
  console.log('ready');
  process.stdin.resume();
  await once(process.stdin, 'end');
  await stop();
}

for (const name of names.split(',')) {
  console.error(`playing ${name}`);
  const more = `${tag}-${name}`;
  try {
    await { ...calls, ...registry, served, gateway: () => gateway(tag) }[name]({ gateways, tag: more, peer, domain: `interop-${more}` });
  } catch (err) {
    console.error(err);
    process.exit(1);
  }
}
for (const g of gateways) g.close();
