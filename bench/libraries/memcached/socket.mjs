// A bare socket to memcached: ready text in, text out; no cache, no codec, no deadlines. What any client is bounded by.
import { once } from "node:events";
import { connect } from "node:net";

const LINE_FEED = 10;
const SIZE = 64 * 1024;

/** Commands of one turn leave in one write; replies come in the order of the commands. */
export async function open({ url, memcachedUrl = url, ttl }) {
  const { hostname, port } = new URL(memcachedUrl);
  const socket = connect({ host: hostname, port: Number(port) }).setNoDelay(true);
  await once(socket, "connect");
  const lifetime = Math.floor(ttl) + 1;
  let out = Buffer.allocUnsafe(SIZE);
  let from = 0;
  let at = 0;
  let waiting = [];
  let answered = 0;
  const flush = () => {
    socket.write(out.subarray(from, at));
    if (SIZE - at < SIZE / 4) {
      out = Buffer.allocUnsafe(SIZE);
      at = 0;
    }
    from = at;
  };
  const send = (text, resolve) => {
    if (at === from) process.nextTick(flush);
    at += out.latin1Write(text, at);
    waiting.push(resolve);
  };
  socket.on("data", (chunk) => {
    // "HD\r\n" for a store; a value is asked for alone.
    if (chunk[0] === "V".charCodeAt(0)) {
      const start = chunk.indexOf(LINE_FEED) + 1;
      waiting[answered++](chunk.latin1Slice(start, chunk.length - 2));
    } else for (let end = 0; end < chunk.length; end++) if (chunk[end] === LINE_FEED) waiting[answered++]();
    if (answered === waiting.length) {
      waiting = [];
      answered = 0;
    }
  });
  return {
    write: (value) => JSON.stringify(value),
    sizeOf: (text) => text.length,
    get: (key) => new Promise((resolve) => send(`mg ${key} v\r\n`, resolve)),
    set: (key, text) =>
      new Promise((resolve) => send(`ms ${key} ${text.length} T${lifetime}\r\n${text}\r\n`, resolve)),
  };
}
