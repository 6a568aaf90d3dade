// A relay on Socket.IO as its documentation sets it up: each client is in the room of its own id.
// Called with a port of its own and that of Redis.
const { createServer } = require("http");
const { Server } = require("socket.io");
const { createClient } = require("redis");
const { createAdapter } = require("@socket.io/redis-streams-adapter");

const [port, redisPort] = process.argv.slice(2).map(Number);

async function main() {
  const client = createClient({ url: `redis://127.0.0.1:${redisPort}` });
  client.on("error", (err) => console.error(err));
  await client.connect();
  const http = createServer((_, res) => res.end("ready"));
  const io = new Server(http, {
    serveClient: false,
    connectionStateRecovery: { maxDisconnectionDuration: 2 * 60 * 1000 },
    // The stream holds what is under way, too: with the default of 10,000 entries a load like this would lose some.
    adapter: createAdapter(client, { maxLen: 200000, onlyPlaintext: true }),
  });
  io.on("connection", (socket) => {
    socket.join(socket.handshake.auth.id);
    socket.on("join", (room, ack) => {
      socket.join(room);
      ack();
    });
    socket.on("chunk", (to, text) => io.to(to).emit("t", text));
    socket.on("message", (to, text, ack) => {
      io.to(to).emit("t", text);
      ack();
    });
  });
  http.listen(port, "127.0.0.1");
}

main();
