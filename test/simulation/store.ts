// The simulated store: a master with at most one replica, what is done to them, and what their records say.
import { createCodec } from "../../src/codec/codec.ts";
import { decodeRecord, encodeRecord } from "../../src/core/frame/frame.ts";
import { spelling, TAG_GROUPS } from "../../src/core/keys.ts";
import type { StoreRecord } from "../../src/core/record.ts";
import { Network } from "./network.ts";
import { isLease, type Kept, type Records, Server, versionOf } from "./server.ts";
import type { SimulatedTime } from "./time.ts";

export interface StoreSettings {
  readonly hasReplica: boolean;
  /** The store has been used before: it has the stamps of all tag groups. */
  readonly isWarm: boolean;
}

const ROOT = spelling("x");

/** The store's key of an entry. */
export const spelledKey = (namespace: string, key: string): string =>
  (namespace === "" ? ROOT : ROOT.child(namespace)).entry(key);
const codec = createCodec({ serialization: "msgpack", compression: false });

export class Store {
  readonly network: Network;
  /** How far its clock is ahead of the simulated time. */
  skewMs = 0;
  readonly #time: SimulatedTime;
  #identities = 0;
  readonly #servers: Server[];
  /** Writes that the replica has not applied. */
  #replication: { readonly key: string; readonly kept: Kept | undefined }[] = [];
  #saved: Records | undefined;

  constructor({ hasReplica, isWarm }: StoreSettings, time: SimulatedTime) {
    this.#time = time;
    const host = {
      now: () => this.#now,
      executed: () => {
        this.network.sequence++;
      },
      changed: (server: Server, key: string) => {
        if (hasReplica && server === this.network.master)
          this.#replication.push({ key, kept: server.records.get(key) });
      },
    };
    const master = new Server("A", host, this.#identity());
    // Servers have usually been running for a while.
    master.startedAt -= 3_600_000;
    master.records = isWarm ? new Map(warmed(time.now)) : new Map();
    this.#servers = [master];
    this.network = new Network(master);
    if (!hasReplica) return;
    const replica = new Server("B", host, this.#identity());
    replica.startedAt -= 3_600_000;
    replica.resync(master);
    this.#servers.push(replica);
  }

  /** Between `promote` and `failover`. */
  get hasTwoMasters(): boolean {
    return this.network.master !== this.#servers[0];
  }

  save(): void {
    this.#saved = new Map(this.network.master.records);
  }

  /** From what was saved; false if nothing was. */
  restart(): boolean {
    if (this.#saved === undefined || this.hasTwoMasters) return false;
    this.network.master.restart(this.#saved, this.#identity());
    this.#resyncReplica();
    return true;
  }

  switch(isDown: boolean): boolean {
    if (this.network.isDown === isDown) return false;
    this.network.isDown = isDown;
    if (isDown) this.network.master.dropAll();
    return true;
  }

  replicate(count: number): boolean {
    const [, replica] = this.#servers;
    if (replica === undefined || this.hasTwoMasters || this.#replication.length === 0) return false;
    for (const { key, kept } of this.#replication.splice(0, count)) replica.follow(key, kept);
    return true;
  }

  promote(): boolean {
    const [, replica] = this.#servers;
    if (replica === undefined || this.hasTwoMasters) return false;
    replica.promote(this.#identity());
    this.network.master = replica;
    return true;
  }

  /** `keepsConnections`: those of the former master. */
  failover(keepsConnections: boolean): boolean {
    if (!this.promote() && !this.hasTwoMasters) return false;
    this.#servers.reverse();
    this.#resyncReplica(keepsConnections);
    return true;
  }

  /** Evicts a record, counted among all but the stamps of tag groups, and returns its key. */
  evict(rank: number): string | undefined {
    const { master } = this.network;
    const keys = [...master.records.keys()].filter((key) => !key.includes("!g:"));
    const key = keys[rank % Math.max(1, keys.length)];
    if (key !== undefined) master.evict(key);
    return key;
  }

  /** Whether it holds a lease that has not lapsed. */
  hasLease(): boolean {
    for (const [key, { frame }] of this.network.master.records) {
      const record = isLease(frame) ? recordIn(this.network.master.records, this.#now, key) : undefined;
      if (record?.kind === "lease" && record.expires > this.#now) return true;
    }
    return false;
  }

  /** The version of the lease in the place of an entry. */
  leaseOf(namespace: string, key: string): string | undefined {
    const frame = this.network.master.records.get(spelledKey(namespace, key))?.frame;
    return frame !== undefined && isLease(frame) ? versionOf(frame) : undefined;
  }

  /** The value that a process without any memory of its own would read. */
  liveValue(namespace: string, key: string): string | undefined {
    return liveValueIn(this.network.master.records, this.#now, namespace, key);
  }

  get #now(): number {
    return this.#time.now + this.skewMs;
  }

  #resyncReplica(keepsConnections = false): void {
    const [master, replica] = this.#servers;
    this.#replication = [];
    if (master === undefined) return;
    if (keepsConnections) replica?.demote(master);
    else replica?.resync(master);
  }

  /** As Redis identifies a run or a history: 40 hexadecimal digits. */
  #identity(): string {
    return (++this.#identities).toString(16).padStart(40, "f");
  }
}

/** The value that a process without any memory of its own would read from these records. */
export function liveValueIn(
  records: Records,
  now: number,
  namespace: string,
  key: string,
): string | undefined {
  const path = namespace === "" ? [ROOT] : [ROOT, ROOT.child(namespace)];
  const names = path.at(-1) as typeof ROOT;
  const record = recordIn(records, now, names.entry(key));
  const entry = record?.kind === "lease" ? record.behind : record;
  if (entry?.kind !== "entry" || entry.expires <= now) return undefined;
  const isCurrent = (spelled: string, id: string | undefined): boolean =>
    id !== undefined && recordIn(records, now, spelled)?.version === id;
  const isLive =
    path.every((each, at) => isCurrent(each.namespaceStamp(), entry.namespaceStamps[at])) &&
    entry.tags.every(({ tag, id }) => isCurrent(names.tagStamp(tag), id));
  return isLive ? (codec.decode(entry.payload) as string) : undefined;
}

function recordIn(records: Records, now: number, key: string): StoreRecord | undefined {
  const kept = records.get(key);
  return kept === undefined || kept.expires <= now
    ? undefined
    : decodeRecord(Buffer.from(kept.frame, "latin1"), key);
}

let stamped: Records | undefined;

/** The same for every world: time always begins at the same moment. */
function warmed(now: number): Records {
  stamped ??= groupStamps(now);
  return stamped;
}

/** The stamps of all tag groups. */
function groupStamps(now: number): Records {
  const records: Records = new Map();
  for (const names of [spelling("x"), spelling("x").child("c")]) {
    for (let group = 0; group < TAG_GROUPS; group++) {
      const expires = now + 48 * 3_600_000;
      const version = `g${String(group).padStart(7, "0")}`;
      const frame = Buffer.from(encodeRecord({ kind: "stamp", version, expires })).toString("latin1");
      records.set(names.groupStamp(group), { frame, expires });
    }
  }
  return records;
}
