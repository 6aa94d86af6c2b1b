// Which replies each command may get, besides an error. Anything else means that replies and commands no longer correspond.
import { type Reply, Span } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";

export interface ExpectedReply {
  /** Completes "expected ...". */
  readonly what: string;
  /** `keys`: how many the command names, where it reads records. */
  fits(reply: Reply, keys: number): boolean;
}

const isBytes = (reply: Reply | undefined): boolean => reply instanceof Span || Buffer.isBuffer(reply);
const isText = (reply: Reply | undefined): boolean => typeof reply === "string" || isBytes(reply);
const isWhole = (reply: Reply | undefined): boolean => typeof reply === "number" && Number.isInteger(reply);
const isRecord = (reply: Reply | undefined): boolean => reply === null || isBytes(reply);

function areRecords(reply: Reply, keys: number): boolean {
  if (!Array.isArray(reply) || reply.length !== keys) return false;
  for (let at = 0; at < reply.length; at++) if (!isRecord(reply[at])) return false;
  return true;
}

/** Of GET and MGET. */
export const RECORD: ExpectedReply = { what: "a string or null", fits: isRecord };
export const RECORDS: ExpectedReply = { what: "a string or null for every key", fits: areRecords };

const ANY: ExpectedReply = { what: "anything", fits: () => true };
const OK: ExpectedReply = { what: "OK", fits: (reply) => reply === "OK" };
/** Of SET with a condition. */
const OK_IF_MET: ExpectedReply = {
  what: "OK or null",
  fits: (reply) => reply === "OK" || reply === null,
};
export const QUEUED: ExpectedReply = { what: "QUEUED", fits: (reply) => reply === "QUEUED" };
const TEXT: ExpectedReply = { what: "a string", fits: isText };
const WHOLE: ExpectedReply = { what: "an integer", fits: isWhole };
const LIST: ExpectedReply = { what: "a list", fits: Array.isArray };
const SWAPPED: ExpectedReply = {
  what: "1, a string or null",
  fits: (reply) => reply === 1 || isRecord(reply),
};
const KILLED: ExpectedReply = { what: "an integer or OK", fits: (reply) => reply === "OK" || isWhole(reply) };

const TIME: ExpectedReply = {
  what: "seconds and microseconds",
  fits: (reply) => isPair(reply) && reply.every((part) => /^\d{1,16}$/.test(textOf(part))),
};

const SCANNED: ExpectedReply = {
  what: "a cursor and a list of keys",
  fits: (reply) =>
    isPair(reply) &&
    /^\d{1,20}$/.test(textOf(reply[0])) &&
    Array.isArray(reply[1]) &&
    reply[1].every((key) => Buffer.isBuffer(key)),
};

const SLOTS: ExpectedReply = {
  what: "a list of slots and their servers",
  fits: (reply) => Array.isArray(reply) && reply.every(isSlotRange),
};

/** The first and the last slot, and the servers: host, port and more. */
function isSlotRange(row: Reply): boolean {
  if (!Array.isArray(row) || row.length < 3) return false;
  const [first, last, ...servers] = row;
  return (
    isWhole(first) && isWhole(last) && servers.every((server) => Array.isArray(server) && isWhole(server[1]))
  );
}

const MASTER: ExpectedReply = {
  what: "a host and a port, or null",
  fits: (reply) => reply === null || (isPair(reply) && reply.every(isText)),
};

const isPair = (reply: Reply): reply is readonly Reply[] => Array.isArray(reply) && reply.length === 2;
const textOf = (reply: Reply | undefined): string => (isText(reply) ? String(reply) : "");

/** By the name of the command, with the word after it where that is part of the name. */
const EXPECTED: ReadonlyMap<string, ExpectedReply> = new Map([
  ["ASKING", OK],
  ["AUTH", OK],
  ["CLIENT CACHING", OK],
  ["CLIENT KILL", KILLED],
  ["CLIENT TRACKING", OK],
  ["CLUSTER MYID", TEXT],
  ["CLUSTER SLOTS", SLOTS],
  ["DBSIZE", WHOLE],
  ["DEL", WHOLE],
  ["EVAL", SWAPPED],
  ["EVALSHA", SWAPPED],
  ["EXEC", { what: "a list or null", fits: (reply) => reply === null || Array.isArray(reply) }],
  ["GET", RECORD],
  ["GETDEL", RECORD],
  ["GETRANGE", TEXT],
  ["HELLO", LIST],
  ["INFO", TEXT],
  ["MULTI", OK],
  ["PING", TEXT],
  ["SCAN", SCANNED],
  ["SELECT", OK],
  ["SENTINEL GET-MASTER-ADDR-BY-NAME", MASTER],
  ["SENTINEL SENTINELS", LIST],
  ["SET", OK],
  ["STRLEN", WHOLE],
  ["TIME", TIME],
  ["TOUCH", WHOLE],
  ["UNWATCH", OK],
  ["WATCH", OK],
]);

const CONTAINERS = new Set(["CLIENT", "CLUSTER", "SENTINEL"]);

export function expectedOf(args: readonly Argument[]): ExpectedReply {
  const name = args[0] as string;
  if (name === "SET" && args[3] === "XX") return OK_IF_MET;
  return EXPECTED.get(CONTAINERS.has(name) ? `${name} ${args[1]}` : name) ?? ANY;
}

/** What arrived, without its contents. */
export function kindOf(reply: Reply): string {
  if (reply === null) return "null";
  if (Array.isArray(reply)) return `a list of ${reply.length}`;
  if (isBytes(reply)) return "a string";
  if (typeof reply === "string") return "a simple string";
  return typeof reply === "object" ? "an error" : `a ${typeof reply}`;
}
