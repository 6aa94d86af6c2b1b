// What a cluster says about itself: which server holds which slots, and where a key is instead.
import type { HostPort } from "../../../core/address/address.ts";
import type { Reply, ReplyError } from "../resp/reply.ts";
import { SLOTS } from "./slots.ts";

export interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly master: HostPort;
  readonly masterId: string | undefined;
}

export interface Topology {
  readonly ranges: readonly SlotRange[];
  /** They know the topology too. */
  readonly replicas: readonly HostPort[];
}

/** MOVED: the slot is there from now on. ASK: this key is there, for this once. */
export interface Redirect {
  readonly slot: number;
  readonly to: HostPort;
}

export const nameOfHost = ({ host, port }: HostPort): string => `${host}:${port}`;

/** The answer to CLUSTER SLOTS of the server at `askedHost`; throws on anything else. */
export function topologyOf(reply: Reply, askedHost: string): Topology {
  const ranges: SlotRange[] = [];
  const replicas: HostPort[] = [];
  for (const row of listIn(reply)) {
    const [first, last, master, ...others] = listIn(row);
    if (!isSlot(first) || !isSlot(last) || first > last || master === undefined) throw notSlots();
    ranges.push({ first, last, master: serverIn(master, askedHost), masterId: textIn(listIn(master)[2]) });
    replicas.push(...others.map((other) => serverIn(other, askedHost)));
  }
  return { ranges, replicas };
}

/** How many slots it tells of. */
export const slotsIn = ({ ranges }: Topology): number =>
  ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);

/** Where a MOVED or ASK from the server at `askedHost` points to; undefined where it makes no sense. */
export function redirectIn({ message }: ReplyError, askedHost: string): Redirect | undefined {
  // Such as `MOVED 3999 127.0.0.1:6381`; an IPv6 address holds colons, an unknown host is left out.
  const [, slot, host, port] = /^[A-Z]+ (\d+) (\S*):(\d+)$/.exec(message.trim()) ?? [];
  if (slot === undefined || Number(slot) >= SLOTS) return undefined;
  return { slot: Number(slot), to: { host: hostOr(host, askedHost), port: Number(port) } };
}

/** A server is its host, its port, its id and, where the host is not its address, more names for it. */
function serverIn(reply: Reply, askedHost: string): HostPort {
  const [host, port, , names] = listIn(reply);
  if (typeof port !== "number") throw notSlots();
  return { host: hostOr(textIn(host) || addressIn(names), askedHost), port };
}

/** A server that does not know its own host, or has none of the preferred kind, is where it was asked. */
function hostOr(host: string | undefined, askedHost: string): string {
  return host === undefined || host === "" || host === "?" ? askedHost : host;
}

function addressIn(names: Reply | undefined): string | undefined {
  if (!Array.isArray(names)) return undefined;
  const at = names.findIndex((name) => textIn(name) === "ip");
  return at < 0 ? undefined : textIn(names[at + 1]);
}

function textIn(reply: Reply | undefined): string | undefined {
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  return typeof reply === "string" ? reply : undefined;
}

function listIn(reply: Reply | undefined): readonly Reply[] {
  if (!Array.isArray(reply)) throw notSlots();
  return reply;
}

const isSlot = (reply: Reply | undefined): reply is number =>
  typeof reply === "number" && reply >= 0 && reply < SLOTS;

const notSlots = (): Error => new Error("the answer to CLUSTER SLOTS is not a list of slots and servers");
