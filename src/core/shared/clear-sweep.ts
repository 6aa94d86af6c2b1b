// Reclaims in the background what clear() left dead in a namespace and its children, at a slow pace. What it does not
// reach is reclaimed when a read finds it, or expires.
import type { ScanItem } from "../backend.ts";
import type { NamespaceStamps } from "../invalidation/namespace-stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Entry } from "../record.ts";
import type { EntryScan } from "./entry-scan.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** Repeated clears within this time start one sweep. */
const START_DELAY_MS = 1_000;
/** Between two steps of the scan, so that it takes little of the store's time. */
const PAUSE_MS = 50;
const BATCH_SIZE = 100;

export class ClearSweep {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;
  readonly #stamps: NamespaceStamps;
  readonly #scan: EntryScan;
  #isRunning = false;
  /** The session in which something was cleared since the present round began. */
  #wantedIn: number | undefined;

  constructor(store: NamespaceHost, names: Spelling, stamps: NamespaceStamps, scan: EntryScan) {
    this.#store = store;
    this.#names = names;
    this.#stamps = stamps;
    this.#scan = scan;
  }

  /** The namespace has a new stamp. */
  begin(): void {
    if (!this.#store.backend.capabilities.scan) return;
    this.#wantedIn = this.#store.session;
    // It fails when the store is unreachable or the cache was disconnected: entries expire by themselves then.
    if (!this.#isRunning) this.#run().catch(() => {});
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#wantedIn !== undefined) {
        await this.#store.pause(START_DELAY_MS);
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
    for await (const batch of this.#scan.records(undefined, prefix)) {
      const dead = await this.#deadAmong(batch);
      for (let at = 0; at < dead.length; at += BATCH_SIZE)
        await this.#remove(dead.slice(at, at + BATCH_SIZE));
      await this.#store.pause(PAUSE_MS);
      if (this.#store.session !== session) return;
    }
  }

  /** Reads the stamp after the entries: none of them can carry a newer one. */
  async #deadAmong(batch: readonly ScanItem[]): Promise<readonly Entry[]> {
    const entries = batch.flatMap(({ record }) => (record.kind === "entry" ? [record] : []));
    if (entries.length === 0) return [];
    const { guard, stamps } = this.#store;
    const [present] = await guard.run("clear", () => stamps.confirm([this.#names.namespaceStamp()]));
    const depth = this.#stamps.namespaceKeys.length - 1;
    // The library's own records carry no stamps.
    return entries.filter(
      ({ namespaceStamps }) => namespaceStamps.length > depth && namespaceStamps[depth] !== present,
    );
  }

  async #remove(dead: readonly Entry[]): Promise<void> {
    const { backend, guard } = this.#store;
    await guard.run("clear", () =>
      Promise.all(dead.map(({ key, version }) => backend.swap(key, version, undefined))),
    );
  }
}
