// Parses the replies of a cluster: CLUSTER SLOTS, and MOVED and ASK redirections.
import type { HostPort } from "../../../core/address/address.ts";
import { ConnectionError } from "../../../core/errors.ts";
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
  /** Can be queried for the topology too. */
  readonly replicas: readonly HostPort[];
}

/** MOVED: the slot has migrated. ASK: try this key there once; the slot is still migrating. */
export interface Redirect {
  readonly slot: number;
  readonly to: HostPort;
}

export const nameOfHost = ({ host, port }: HostPort): string => `${host}:${port}`;

/** Parses the reply to CLUSTER SLOTS of the server at `queriedHost`; throws on anything else. */
export function topologyOf(
  reply: Reply,
  queriedHost: string,
  translate: (announced: HostPort) => HostPort = (announced) => announced,
): Topology {
  const serverAt = (server: Reply): HostPort => translate(serverIn(server, queriedHost));
  const ranges: SlotRange[] = [];
  const replicas: HostPort[] = [];
  for (const row of listIn(reply)) {
    const [first, last, master, ...others] = listIn(row);
    if (!isSlot(first) || !isSlot(last) || first > last || master === undefined) throw notSlots();
    ranges.push({ first, last, master: serverAt(master), masterId: textIn(listIn(master)[2]) });
    replicas.push(...others.map(serverAt));
  }
  return { ranges, replicas };
}

/** How many slots it covers. */
export const slotsIn = ({ ranges }: Topology): number =>
  ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);

/** The target of a MOVED or ASK from the server at `queriedHost`; undefined if it cannot be parsed. */
export function redirectIn({ message }: ReplyError, queriedHost: string): Redirect | undefined {
  // Such as `MOVED 3999 127.0.0.1:6381`; an IPv6 address contains colons, an unknown host is empty.
  const [, slot, host, port] = /^[A-Z]+ (\d+) (\S*):(\d+)$/.exec(message.trim()) ?? [];
  if (slot === undefined || Number(slot) >= SLOTS) return undefined;
  return { slot: Number(slot), to: { host: hostOr(host, queriedHost), port: Number(port) } };
}

/** A server is a list of host, port, id and, where the host is not its IP address, further names. */
function serverIn(reply: Reply, queriedHost: string): HostPort {
  const [host, port, , names] = listIn(reply);
  if (typeof port !== "number") throw notSlots();
  return { host: hostOr(textIn(host) || addressIn(names), queriedHost), port };
}

/** A server that does not know its own host, or has none of the preferred kind, has the queried one. */
function hostOr(host: string | undefined, queriedHost: string): string {
  return host === undefined || host === "" || host === "?" ? queriedHost : host;
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

const notSlots = (): ConnectionError =>
  new ConnectionError("the reply to CLUSTER SLOTS is not a list of slots and servers", {
    code: "PROTOCOL_VIOLATED",
  });
