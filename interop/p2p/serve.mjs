// serve.mjs ADDRESS… listens at addresses, as a rule at EDGE/p2p-circuit, which is a place that it reserves at an edge. It serves a card, handoffs, whose answers are streamed, and echoes.
// It says "ready", its peer id and where it is reached, all in one line, and ends with its standard input.
import { anywhere, card, echo, handoff, main, peer, read, write } from './peer.mjs'

const utf8 = new TextEncoder()

// A request is complete with its closing brace: who asks need not close its end.
async function request(stream) {
  let text = ''
  for await (const piece of stream) {
    text += new TextDecoder().decode(piece.subarray())
    try {
      return JSON.parse(text)
    } catch {} // more is to come
  }
  throw new Error(`a request that ends: ${text}`)
}

async function showsCard(stream) {
  await write(stream, utf8.encode('{ "name": "js", "skills": [{"name":"greet","path":"/greet/{name}","method":"POST"}] }'))
  await stream.close()
}

// takesHandoff says what it is asked, and then counts to three, each in a piece of its own.
async function takesHandoff(stream) {
  const asked = await request(stream)
  await write(stream, utf8.encode(JSON.stringify(asked) + '\n'))
  for (let n = 1; n <= 3; n++) {
    await new Promise(done => setTimeout(done, 10))
    await write(stream, utf8.encode(`piece ${n}\n`))
  }
  await stream.close()
}

async function echoes(stream) {
  await read(stream, piece => write(stream, piece))
  await stream.close()
}

// serves aborts a stream where that fails.
const serves = f => async stream => {
  try {
    await f(stream)
  } catch (err) {
    stream.abort(err)
  }
}

await main(async listen => {
  const node = await peer(listen)
  await node.handle(card, serves(showsCard), anywhere)
  await node.handle(handoff, serves(takesHandoff), anywhere)
  await node.handle(echo, serves(echoes), anywhere)
  console.log(['ready', node.peerId, ...node.getMultiaddrs()].join(' '))
  for await (const _ of process.stdin);
  await node.stop()
})
