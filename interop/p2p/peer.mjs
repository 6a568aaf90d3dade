// A peer of libp2p as its users put one together, and what it does on a stream.
import { circuitRelayTransport } from '@libp2p/circuit-relay-v2'
import { identify } from '@libp2p/identify'
import { noise } from '@libp2p/noise'
import { ping } from '@libp2p/ping'
import { tcp } from '@libp2p/tcp'
import { webSockets } from '@libp2p/websockets'
import { yamux } from '@libp2p/yamux'
import { createLibp2p } from 'libp2p'

export const card = '/ai-agent/card/1.0.0'
export const handoff = '/ai-agent/handoff/1.0.0'
export const echo = '/echo/1.0.0'

// Circuits are limited connections, on which no protocol runs unless it is told to.
export const anywhere = { runOnLimitedConnection: true }

// peer starts one that listens at addresses; none for one that only dials. It makes a key of its own where it is given none. It reserves all its places at once: the library forgets those that wait while it has one, and never starts. It hangs up on nobody whose pong is late,
// as it would on a connection that has much under way; its streams would end as if that were all.
export function peer(listen = [], privateKey) {
  return createLibp2p({
    privateKey,
    addresses: { listen },
    transports: [tcp(), webSockets(), circuitRelayTransport({ reservationConcurrency: listen.length + 1 })],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    connectionMonitor: { abortConnectionOnPingFailure: false },
    services: { identify: identify(), ping: ping() },
  })
}

// write writes to a stream, and returns when the connection has taken all: the library's own onDrain waits once for each stream and never again.
export async function write(stream, bytes) {
  stream.send(bytes)
  while (stream.writeBufferLength > 0) await event(stream, 'idle')
}

// event waits for an event of a stream that is not closed.
function event(stream, name) {
  return new Promise((resolve, reject) => {
    const closed = ({ error }) => over(() => reject(error ?? new Error('the stream is closed')))
    const came = () => over(resolve)
    const over = then => {
      stream.removeEventListener(name, came)
      stream.removeEventListener('close', closed)
      then()
    }
    stream.addEventListener(name, came)
    stream.addEventListener('close', closed)
  })
}

// read calls f for what comes, to the end. It is called before anything is written, as a stream that ends before it is read never says so.
export async function read(stream, f) {
  for await (const piece of stream) await f(piece.subarray())
  if (stream.status === 'reset' || stream.status === 'aborted') throw new Error('the stream was reset')
}

// main runs f, and ends with 1 and the failure where that fails.
export async function main(f) {
  try {
    await f(process.argv.slice(2))
    process.exit(0)
  } catch (err) {
    console.error(err)
    process.exit(1)
  }
}
