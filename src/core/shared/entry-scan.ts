// Scans the entries of one namespace of a shared store: inspects one, lists all, or measures their memory.
import type { ScanItem, ScanPosition } from "../backend.ts";
import { payloadLength } from "../codec.ts";
import { CodecError, UnsupportedError } from "../errors.ts";
import type { Spelling } from "../keys.ts";
import {
  countedUsage,
  type EntryScanOptions,
  type Examination,
  type Inspection,
  type NamespaceUsage,
  type Preview,
} from "../namespace.ts";
import type { Entries } from "./entries.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** Of a compressed payload, whatever part of it is wanted. */
const LEAST_UNPACKED = 4_096;

export class EntryScan {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;
  readonly #entries: Entries;

  constructor(store: NamespaceHost, names: Spelling, entries: Entries) {
    this.#store = store;
    this.#names = names;
    this.#entries = entries;
  }

  inspect(key: string): Promise<Inspection | undefined> {
    return this.#store.guard.run("inspect", async () => {
      const record = await this.#store.backend.readHeader(this.#names.entry(key));
      const entry = await this.#entries.fresh(key, record);
      return entry === undefined ? undefined : this.#entries.inspection(entry, payloadLength(entry.payload));
    });
  }

  preview(key: string, most: number): Promise<Preview | undefined> {
    return this.#store.guard.run("inspect", async () => {
      const head = await this.#store.backend.readHead(this.#names.entry(key), most);
      const entry = await this.#entries.live(key, head?.record);
      if (head === undefined || entry === undefined) return undefined;
      const { payloadBytes: of, unread } = head;
      const read = unread === undefined ? payloadLength(entry.payload) : 0;
      const inspection = { ...this.#entries.inspection(entry, of), read, of };
      if (unread !== undefined) return { ...inspection, beginning: undefined, unread };
      try {
        const { codec } = this.#store;
        return {
          ...inspection,
          beginning: await codec.decodeBeginning(entry.payload, read === of, Math.max(most, LEAST_UNPACKED)),
        };
      } catch (error) {
        // A damaged entry is an error; one of a format that is not known here may be read by others.
        if (!(error instanceof CodecError) || error.code === "FRAME_INVALID") throw error;
        return { ...inspection, beginning: undefined, read: 0, unread: error.message };
      }
    });
  }

  /** Reads the whole value, which is the only way to know its type. */
  examine(key: string): Promise<Examination | undefined> {
    return this.#store.guard.run("inspect", async () => {
      const entry = await this.#entries.live(key, await this.#store.backend.read(this.#names.entry(key)));
      if (entry === undefined) return undefined;
      const value = this.#store.codec.decode(entry.payload);
      return { ...this.#entries.inspection(entry, payloadLength(entry.payload)), value };
    });
  }

  async *scan({
    signal,
    stale = false,
    ...position
  }: EntryScanOptions = {}): AsyncIterable<readonly Inspection[]> {
    for await (const batch of this.records(signal, this.#names.entryPrefix, position)) {
      const inspected = await this.#store.guard.run("keys", () =>
        Promise.all(batch.map((item) => this.#inspected(item, stale))),
      );
      yield inspected.filter((item) => item !== undefined);
    }
  }

  async #inspected({ key, record, bytes }: ScanItem, stale: boolean): Promise<Inspection | undefined> {
    const name = this.#names.keyOf(key);
    const entry = await (stale ? this.#entries.live(name, record) : this.#entries.fresh(name, record));
    return entry === undefined ? undefined : this.#entries.inspection(entry, bytes);
  }

  async usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    if (!exact) {
      return this.#store.guard.run("getStats", () => this.#store.backend.usage(this.#names.entryPrefix));
    }
    return countedUsage(this.scan({ signal }));
  }

  /** Every record under this namespace's entry prefix, or another prefix; each batch has its own deadline. */
  async *records(
    signal?: AbortSignal,
    prefix = this.#names.entryPrefix,
    position: ScanPosition = {},
  ): AsyncIterable<readonly ScanItem[]> {
    const { backend, guard, report } = this.#store;
    if (!backend.capabilities.scan) {
      throw new UnsupportedError(`the ${backend.name} store cannot list keys`, {
        operation: "keys",
        hint: "Keep the keys you need to list under a tag, or use a store that can scan.",
      });
    }
    const batches = backend.scan(prefix, signal === undefined ? position : { ...position, signal });
    const iterator = batches[Symbol.asyncIterator]();
    try {
      for (;;) {
        if (signal?.aborted) return;
        const next = await guard.run("keys", async () => iterator.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      // Not awaited: it would queue behind a batch that may never arrive.
      iterator.return?.().catch(report);
    }
  }
}
