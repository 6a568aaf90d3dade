// bind.mjs URL TOKEN AGENT KEY EDGE makes a key of a type (Ed25519, RSA, secp256k1), and asks the edge at a whole multiaddress for the cluster's card under it: at first as nobody, then when the edge's
// HTTP at URL was told which peer the agent is, and then when that was proven by the key. It writes the three cards and the two answers as one list.
import { generateKeyPair, publicKeyToProtobuf } from '@libp2p/crypto/keys'
import { multiaddr } from '@multiformats/multiaddr'
import { anywhere, card, main, peer, read } from './peer.mjs'

await main(async ([url, token, agent, type, edge]) => {
  const privateKey = await generateKeyPair(type)
  const node = await peer([], privateKey)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

  const asks = async () => {
    const stream = await node.dialProtocol(multiaddr(edge), card, anywhere)
    let text = ''
    const all = read(stream, piece => { text += new TextDecoder().decode(piece) })
    await stream.close()
    await all
    return JSON.parse(text)
  }

  const registers = async proof => {
    const body = JSON.stringify({ agent_name: agent, peer_id: node.peerId.toString(), addrs: [], proof })
    const answer = await fetch(`${url}/register`, { method: 'POST', headers, body })
    return answer.json()
  }

  const proves = async () => {
    const { edges, tenant, now } = await (await fetch(`${url}/p2p`, { headers })).json()
    const statement = ['agora-peer-binding/1', tenant, agent, edges[0].peer_id, node.peerId.toString(), now].join('\n')
    const signature = Buffer.from(await privateKey.sign(new TextEncoder().encode(statement))).toString('base64')
    const public_key = Buffer.from(publicKeyToProtobuf(privateKey.publicKey)).toString('base64')
    return { edge: edges[0].peer_id, time: now, signature, public_key }
  }

  console.log(JSON.stringify([await asks(), await registers(), await asks(), await registers(await proves()), await asks()]))
  await node.stop()
})
