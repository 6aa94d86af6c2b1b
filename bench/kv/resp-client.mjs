// A minimal Redis client: one socket, the commands of a tick in one write, replies in order and as text.
import { once } from "node:events";
import { connect } from "node:net";

const CR = 13;
const INCOMPLETE = Symbol("incomplete");

/** Rejects when nothing listens there. Errors of the server reject the command they answer. */
export async function openClient(port) {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await once(socket, "connect");
  const read = replyReader();
  let waiting = [];
  let answered = 0;
  let unsent = "";

  const flush = () => {
    socket.write(unsent);
    unsent = "";
  };
  const send = (text) => {
    if (unsent === "") process.nextTick(flush);
    unsent += text;
    return new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
    });
  };
  socket.on("data", (chunk) => {
    for (const reply of read(chunk)) {
      const { resolve, reject } = waiting[answered++];
      if (reply instanceof Error) reject(reply);
      else resolve(reply);
    }
    waiting = waiting.slice(answered);
    answered = 0;
  });
  return {
    get: (key) => send(`*2\r\n$3\r\nGET\r\n$${Buffer.byteLength(key)}\r\n${key}\r\n`),
    command: (...args) => send(encode(args)),
    end: () => socket.destroy(),
  };
}

function encode(args) {
  const parts = args.map((arg) => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`);
  return `*${args.length}\r\n${parts.join("")}`;
}

/** A function from a chunk to the replies that it completes. */
function replyReader() {
  let rest;
  return (arrived) => {
    const bytes = rest === undefined ? arrived : Buffer.concat([rest, arrived]);
    const replies = [];
    const cursor = { at: 0 };
    let done = 0;
    while (done < bytes.length) {
      const reply = readReply(bytes, cursor);
      if (reply === INCOMPLETE) break;
      replies.push(reply);
      done = cursor.at;
    }
    rest = done < bytes.length ? bytes.subarray(done) : undefined;
    return replies;
  };
}

function readReply(bytes, cursor) {
  const start = cursor.at;
  const end = bytes.indexOf(CR, start);
  if (end < 0 || end + 2 > bytes.length) return INCOMPLETE;
  const line = bytes.latin1Slice(start + 1, end);
  cursor.at = end + 2;
  switch (String.fromCharCode(bytes[start])) {
    case "$":
      return readText(bytes, cursor, Number(line));
    case "+":
      return line;
    case ":":
      return Number(line);
    case "-":
      return new Error(line);
    case "*":
      return readList(bytes, cursor, Number(line));
    default:
      throw new Error(`unexpected reply: ${line}`);
  }
}

function readText(bytes, cursor, length) {
  if (length < 0) return null;
  const start = cursor.at;
  if (start + length + 2 > bytes.length) return INCOMPLETE;
  cursor.at = start + length + 2;
  return bytes.utf8Slice(start, start + length);
}

function readList(bytes, cursor, length) {
  const items = [];
  while (items.length < length) {
    const item = readReply(bytes, cursor);
    if (item === INCOMPLETE) return INCOMPLETE;
    items.push(item);
  }
  return items;
}
