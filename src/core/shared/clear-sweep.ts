// Removes what a clear() has left dead in a namespace and those below it, bit by bit. Nobody waits for it: what it does not
// get to is removed where it is met, or goes by its ttl.
import type { ScanItem } from "../backend.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Entry } from "../record.ts";
import type { EntryScan } from "./entry-scan.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** Long enough that whoever clears again and again begins once. */
const BEGINS_AFTER_MS = 1_000;
/** Between two steps of the scan, so that it takes a small part of the store's time. */
const PAUSE_MS = 50;
const AT_ONCE = 100;

export class ClearSweep {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;
  readonly #seals: NamespaceStamps;
  readonly #listing: EntryScan;
  #isRunning = false;
  /** Something was cleared since the present round began, in this session of the store. */
  #wantedIn: number | undefined;

  constructor(store: NamespaceHost, names: Spelling, seals: NamespaceStamps, listing: EntryScan) {
    this.#store = store;
    this.#names = names;
    this.#seals = seals;
    this.#listing = listing;
  }

  /** The namespace has a new stamp. */
  begin(): void {
    if (!this.#store.backend.capabilities.scan) return;
    this.#wantedIn = this.#store.session;
    // The store is out of reach, or the cache was disconnected.
    if (!this.#isRunning) this.#run().catch(() => {});
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#wantedIn !== undefined) {
        await this.#pause(BEGINS_AFTER_MS);
        const session = this.#wantedIn;
        this.#wantedIn = undefined;
        for (const prefix of [this.#names.entryPrefix, this.#names.below]) {
          if (this.#store.session === session) await this.#sweep(prefix, session);
        }
      }
    } finally {
      this.#isRunning = false;
    }
  }

  async #sweep(prefix: string, session: number): Promise<void> {
    for await (const batch of this.#listing.records(undefined, prefix)) {
      const dead = await this.#deadAmong(batch);
      for (let at = 0; at < dead.length; at += AT_ONCE) await this.#remove(dead.slice(at, at + AT_ONCE));
      await this.#pause(PAUSE_MS);
      if (this.#store.session !== session) return;
    }
  }

  /** The stamp is asked for after the entries were met: none of them can have a newer one. */
  async #deadAmong(batch: readonly ScanItem[]): Promise<readonly Entry[]> {
    const entries = batch.flatMap(({ record }) => (record.kind === "entry" ? [record] : []));
    if (entries.length === 0) return [];
    const { guard, stamps } = this.#store;
    const [present] = await guard.run("clear", () => stamps.confirm([this.#names.namespaceStamp()]));
    const depth = this.#seals.lineage.length - 1;
    // What the library keeps for itself is sealed with nothing.
    return entries.filter(({ lineage }) => lineage.length > depth && lineage[depth] !== present);
  }

  async #remove(dead: readonly Entry[]): Promise<void> {
    const { backend, guard } = this.#store;
    await guard.run("clear", () =>
      Promise.all(dead.map(({ key, version }) => backend.swap(key, version, undefined))),
    );
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#store.clock.after(ms, resolve));
  }
}
