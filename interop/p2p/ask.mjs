// ask.mjs ADDRESS card|handoff|identify|ping [JSON] asks the peer at a whole multiaddress for its card, hands it a request, or asks who it is or whether it is there, and writes the
// answer to the standard output, as it comes.
import { multiaddr } from '@multiformats/multiaddr'
import { anywhere, card, handoff, main, peer, read, write } from './peer.mjs'

await main(async ([address, what, request]) => {
  const node = await peer()
  const identified = new Promise(resolve => node.addEventListener('peer:identify', event => resolve(event.detail), { once: true }))
  const connection = await node.dial(multiaddr(address))
  if (what === 'identify') {
    const { peerId, agentVersion, protocols } = await identified // of each connection it is asked
    console.log(JSON.stringify({ peer: peerId.toString(), agent: agentVersion, protocols }))
  } else if (what === 'ping') {
    await node.services.ping.ping(connection.remotePeer)
  } else {
    const stream = await connection.newStream({ card, handoff }[what], anywhere)
    const answered = read(stream, piece => new Promise(done => process.stdout.write(piece, done)))
    answered.catch(() => {}) // it is waited for below
    if (request) await write(stream, new TextEncoder().encode(request))
    await stream.close() // for writing
    await answered
  }
  await node.stop()
})
