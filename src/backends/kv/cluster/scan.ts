// Looks through all servers of a cluster, also while slots move between them.
import type { HostPort } from "../../../core/address/address.ts";
import type { ScanItem } from "../../../core/backend.ts";
import { ConnectionError } from "../../../core/errors.ts";
import type { CommandSender } from "../commands/commands.ts";
import { fail, type Scan, scanIsOver, scanOver } from "../commands/scan.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { SLOTS, slotOf } from "./slots.ts";
import { nameOfHost, type SlotRange, topologyOf } from "./topology.ts";

export interface ScannedCluster extends CommandSender {
  masters(): Promise<readonly KvNode[]>;
  /** The servers that hold any of these slots, as the cluster tells it now. */
  holders(slots: ReadonlySet<number>): Promise<readonly KvNode[]>;
}

/** How many times slots that changed hands are looked through again. */
const MOST_ROUNDS = 5;

/**
 * Every record whose key starts with `prefix`. A slot was looked through if its server held it from the beginning of its
 * scan to the end; the others are looked for again, and so a key of theirs may come twice.
 */
export async function* scanCluster(
  cluster: ScannedCluster,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly ScanItem[]> {
  const left = new Set(Array.from({ length: SLOTS }, (_, slot) => slot));
  if (signal?.aborted) return;
  let nodes = await cluster.masters();
  for (let round = 0; nodes.length > 0; round++) {
    if (round > MOST_ROUNDS) throw keepsMoving(left);
    // At first all keys count: a server may have some before it has their slot.
    const again = round === 0 ? {} : { wants: isOneOf(new Set(left)) };
    for (const node of nodes) {
      if (signal?.aborted) return;
      yield* scanMember(node, { prefix, signal, elsewhere: cluster, ...again }, left);
    }
    if (signal?.aborted) return;
    nodes = left.size === 0 ? [] : await cluster.holders(left);
  }
}

/** Takes the slots that it has looked through from those that are left. */
async function* scanMember(node: KvNode, scan: Scan, left: Set<number>): AsyncIterable<readonly ScanItem[]> {
  let connection: Connection | undefined;
  try {
    connection = await node.aside();
    const before = await slotsHeld(connection);
    yield* scanOver(connection, scan);
    if (scan.signal?.aborted) return;
    const after = await slotsHeld(connection);
    for (const slot of before) if (after.has(slot)) left.delete(slot);
  } catch (error) {
    // It has left the cluster, and others have its slots; or else the next question says that there is no cache any more.
    if (!node.isClosed) throw error;
  } finally {
    connection?.destroy(scanIsOver());
  }
}

const isOneOf =
  (slots: ReadonlySet<number>) =>
  (key: string): boolean =>
    slots.has(slotOf(key));

/** By the server's own word: nobody else learns of it so soon. */
async function slotsHeld(connection: Connection): Promise<ReadonlySet<number>> {
  const endpoint = connection.endpoint as HostPort;
  const { ranges } = topologyOf(await connection.command("CLUSTER", "SLOTS").catch(fail), endpoint.host);
  const named = ranges.filter(({ master }) => nameOfHost(master) === nameOfHost(endpoint));
  const held = new Set<number>();
  for (const { first, last } of named.length > 0 ? named : await ownRanges(connection, ranges)) {
    for (let slot = first; slot <= last; slot++) held.add(slot);
  }
  return held;
}

/** Of a server that calls itself otherwise than others do, or holds nothing. */
async function ownRanges(
  connection: Connection,
  ranges: readonly SlotRange[],
): Promise<readonly SlotRange[]> {
  const id = String(await connection.command("CLUSTER", "MYID").catch(fail));
  return ranges.filter(({ masterId }) => masterId === id);
}

function keepsMoving({ size }: ReadonlySet<number>): ConnectionError {
  return new ConnectionError(
    `of the slots of the cluster ${size} kept moving while its keys were looked through`,
    {
      hint: "Call again when the cluster has settled.",
    },
  );
}
