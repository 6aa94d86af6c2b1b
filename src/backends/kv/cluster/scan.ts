// Scans all masters of a cluster, also while slots migrate between them.
import type { HostPort } from "../../../core/address/address.ts";
import type { ScanItem, ScanPosition } from "../../../core/backend.ts";
import { ConnectionError, unknownPosition } from "../../../core/errors.ts";
import type { CommandSender } from "../commands/router.ts";
import { fail, type Scan, scanIsOver, scanOver } from "../commands/scan.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { isForbidden } from "../server/restrictions.ts";
import { SLOTS, slotOf } from "./slots.ts";
import { nameOfHost, type SlotRange, topologyOf } from "./topology.ts";

export interface ScannedCluster extends CommandSender {
  masters(): Promise<readonly KvNode[]>;
  /** The server at this address, which need not hold any slot; the caller calls `leave`. */
  visit(endpoint: HostPort): { readonly node: KvNode; leave(): void };
  /** The current masters of these slots, read from the cluster now. */
  holders(slots: ReadonlySet<number>): Promise<readonly KvNode[]>;
}

/** How often slots that migrated during a round are scanned again. */
const MOST_ROUNDS = 5;

/** Where a scan stands: which of how many masters, and the cursor there. */
interface ClusterPosition {
  readonly at: number;
  readonly of: number;
  readonly cursor: string;
}

function positionOf(from: string): ClusterPosition {
  const [, at, of, cursor] = /^(\d+)\.(\d+)\.(\d+)$/.exec(from) ?? [];
  if (cursor === undefined) throw unknownPosition(from);
  return { at: Number(at), of: Number(of), cursor };
}

/**
 * Every record whose key starts with `prefix`. A slot is complete if its server owned it from the beginning to the end of
 * the scan; the other slots are scanned again, so their keys may be returned twice. A scan that is continued does
 * not notice slots that migrated between its parts.
 */
export async function* scanCluster(
  cluster: ScannedCluster,
  prefix: string,
  signal: AbortSignal | undefined,
  { from, at }: ScanPosition = {},
): AsyncIterable<readonly ScanItem[]> {
  const start = from === undefined ? undefined : positionOf(from);
  const left = new Set(Array.from({ length: SLOTS }, (_, slot) => slot));
  if (signal?.aborted) return;
  let nodes = await cluster.masters();
  // With other masters the position means nothing.
  if (start !== undefined && start.of !== nodes.length) throw unknownPosition(from as string);
  for (let round = 0; nodes.length > 0; round++) {
    if (round > MOST_ROUNDS) throw keepsMigrating(left);
    // The first round takes all keys: a server may hold keys of a slot that it is still importing.
    const again = round === 0 ? {} : { wants: isOneOf(new Set(left)) };
    const departures: Departure[] = [];
    for (const [index, node] of nodes.entries()) {
      if (signal?.aborted) return;
      if (index < (start?.at ?? 0)) continue;
      const isLast = index === nodes.length - 1;
      const place = `${index}.${nodes.length}`;
      let cursor: string | undefined;
      const position: ScanPosition = {
        ...(index === start?.at && { from: start.cursor }),
        at: (next) => {
          cursor = next;
        },
      };
      const scan = { prefix, signal, elsewhere: cluster, ...again, ...position };
      for await (const batch of scanMember(node, scan, left, departures)) {
        if (round === 0 && cursor !== undefined) at?.(`${place}.${cursor}`);
        else if (round === 0 && !isLast) at?.(`${index + 1}.${nodes.length}.0`);
        cursor = undefined;
        yield batch;
      }
    }
    for (const [to, slots] of byTarget(departures)) {
      if (signal?.aborted) return;
      const visit = cluster.visit(to);
      const wants = isOneOf(slots);
      try {
        yield* scanVisited(visit.node, { prefix, signal, elsewhere: cluster, wants });
      } finally {
        visit.leave();
      }
      for (const slot of slots) left.delete(slot);
    }
    if (signal?.aborted || start !== undefined) return;
    nodes = left.size === 0 ? [] : await cluster.holders(left);
  }
}

/** A slot whose keys are being moved to another server, one by one. */
interface Departure {
  readonly slot: number;
  readonly to: HostPort;
}

function byTarget(departures: readonly Departure[]): Iterable<readonly [HostPort, ReadonlySet<number>]> {
  const targets = new Map<string, readonly [HostPort, Set<number>]>();
  for (const { slot, to } of departures) {
    const target = targets.get(nameOfHost(to)) ?? ([to, new Set()] as const);
    target[1].add(slot);
    targets.set(nameOfHost(to), target);
  }
  return targets.values();
}

/**
 * Removes the completely scanned slots from `left`. Some keys of a slot that is migrating are on its next server, which may
 * have been scanned before they came: such slots are added to `departures`.
 */
async function* scanMember(
  node: KvNode,
  scan: Scan,
  left: Set<number>,
  departures: Departure[],
): AsyncIterable<readonly ScanItem[]> {
  let connection: Connection | undefined;
  try {
    connection = await node.separate.open();
    const { epoch } = await ownState(connection);
    const before = await slotsHeld(connection);
    yield* scanOver(connection, scan);
    if (scan.signal?.aborted) return;
    const after = await slotsHeld(connection);
    const own = await ownState(connection);
    // It has received a slot or become a master again: any of its slots may have been away in between.
    if (own.epoch !== epoch) return;
    departures.push(...own.departures);
    for (const { slot } of own.departures) after.delete(slot);
    for (const slot of before) if (after.has(slot)) left.delete(slot);
  } catch (error) {
    // The server has left the cluster and others have its slots; if the whole store was closed, the next round fails.
    if (!node.isClosed) throw error;
  } finally {
    connection?.destroy(scanIsOver());
  }
}

async function* scanVisited(node: KvNode, scan: Scan): AsyncIterable<readonly ScanItem[]> {
  const connection = await node.separate.open();
  try {
    yield* scanOver(connection, scan);
  } finally {
    connection.destroy(scanIsOver());
  }
}

const isOneOf =
  (slots: ReadonlySet<number>) =>
  (key: string): boolean =>
    slots.has(slotOf(key));

/** From the server itself: others learn of a migration later. */
async function slotsHeld(connection: Connection): Promise<Set<number>> {
  const endpoint = connection.endpoint as HostPort;
  const { ranges } = topologyOf(await connection.command("CLUSTER", "SLOTS").catch(fail), endpoint.host);
  const named = ranges.filter(({ master }) => nameOfHost(master) === nameOfHost(endpoint));
  const held = new Set<number>();
  for (const { first, last } of named.length > 0 ? named : await ownRanges(connection, ranges)) {
    for (let slot = first; slot <= last; slot++) held.add(slot);
  }
  return held;
}

interface OwnState {
  /** Changes when the server receives a slot, also one that it had before; undefined where CLUSTER NODES is refused. */
  readonly epoch: string | undefined;
  /** None where CLUSTER NODES is refused. */
  readonly departures: readonly Departure[];
}

/** From the server itself, which alone knows. */
async function ownState(connection: Connection): Promise<OwnState> {
  const reply = await connection.command("CLUSTER", "NODES").catch((error: unknown) => {
    if (!isForbidden(error)) fail(error);
    return "";
  });
  // Each line: id, address, flags, master, two times, epoch, state, and what the server holds.
  const servers = String(reply)
    .split("\n")
    .map((line) => line.split(" "));
  const own = servers.find(([, , flags = ""]) => flags.split(",").includes("myself")) ?? [];
  const departures = own.slice(8).flatMap((held): Departure[] => {
    const [, slot, id] = /^\[(\d+)->-(\w+)\]$/.exec(held) ?? [];
    const address = servers.find(([each]) => each === id)?.[1] ?? "";
    // Such as `127.0.0.1:6381@16381`; an IPv6 address contains colons, an unknown host is empty.
    const [, host, port] = /^(.*):(\d+)@/.exec(address) ?? [];
    if (slot === undefined || port === undefined) return [];
    return [
      {
        slot: Number(slot),
        to: { host: host || (connection.endpoint as HostPort).host, port: Number(port) },
      },
    ];
  });
  return { epoch: own[6], departures };
}

/** By node id, for a server that announces another address than the one connected to, or owns no slot. */
async function ownRanges(
  connection: Connection,
  ranges: readonly SlotRange[],
): Promise<readonly SlotRange[]> {
  const id = String(await connection.command("CLUSTER", "MYID").catch(fail));
  return ranges.filter(({ masterId }) => masterId === id);
}

function keepsMigrating({ size }: ReadonlySet<number>): ConnectionError {
  return new ConnectionError(
    `${size} cluster ${size === 1 ? "slot" : "slots"} kept migrating during the scan`,
    {
      hint: "Scan again when the resharding is complete.",
    },
  );
}
