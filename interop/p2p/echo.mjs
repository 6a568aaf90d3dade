// echo.mjs ADDRESS BYTES close|open has the peer at a whole multiaddress say again that many bytes, which it writes and reads at once. It closes its end for writing behind
// them and reads to the end, or leaves it open and reads as many as it has written. It fails where others come back.
import { createHash, randomBytes } from 'node:crypto'
import { multiaddr } from '@multiformats/multiaddr'
import { anywhere, echo, main, peer, read, write } from './peer.mjs'

await main(async ([address, bytes, end]) => {
  const node = await peer()
  const stream = await node.dialProtocol(multiaddr(address), echo, anywhere)
  const said = createHash('sha256')
  const heard = createHash('sha256')
  let left = Number(bytes)
  const all = new Promise((resolve, reject) => {
    let missing = left
    read(stream, piece => {
      heard.update(piece)
      missing -= piece.length
      if (missing === 0 && end === 'open') resolve()
    }).then(() => missing === 0 ? resolve() : reject(new Error(`${missing} bytes of ${bytes} did not come back`)), reject)
  })
  all.catch(() => {}) // it is waited for below
  while (left > 0) {
    const piece = randomBytes(Math.min(left, 100_000))
    said.update(piece)
    await write(stream, piece)
    left -= piece.length
  }
  if (end === 'close') await stream.close()
  await all
  if (said.digest('hex') !== heard.digest('hex')) throw new Error('what came back is not what was said')
  if (end === 'open') stream.abort(new Error('that is all'))
  await node.stop()
})
