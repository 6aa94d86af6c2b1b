// One namespace of a shared store whose code is being loaded.
import { ChangeLog } from "../core/change-log.ts";
import type { Clock } from "../core/clock.ts";
import type { Copier } from "../core/codec.ts";
import type { Counters } from "../core/counters.ts";
import { frozen, isMadeFrozen } from "../core/frozen.ts";
import type { LazyModule } from "../core/lazy-module.ts";
import type {
  Admission,
  AdmissionOptions,
  EntryOptions,
  EntryScanOptions,
  Examination,
  Found,
  Inspection,
  Namespace,
  NamespaceFace,
  NamespaceUsage,
  Preview,
  ReadCallback,
  Sighting,
  WriteObserver,
} from "../core/namespace.ts";
import type { OwnRecords } from "../core/own-records.ts";

export interface DeferredParts<Code> {
  readonly code: LazyModule<Code>;
  /** Opens the namespace itself. */
  open(code: Code, face: NamespaceFace): Namespace;
  readonly copier: Copier;
  readonly clock: Clock;
  readonly freezes: boolean;
}

export class DeferredNamespace<Code> implements Namespace, NamespaceFace {
  readonly changes: ChangeLog;
  readonly counters: Counters;
  readonly records: OwnRecords;
  readonly freezes: boolean;
  readonly #parts: DeferredParts<Code>;
  readonly #children = new Map<string, DeferredNamespace<Code>>();
  #opened: Namespace | undefined;

  constructor(parts: DeferredParts<Code>, parent?: ChangeLog) {
    this.#parts = parts;
    this.changes = new ChangeLog(parent);
    this.freezes = parts.freezes;
    const now = (): number => this.#opened?.records.now() ?? parts.clock.now();
    this.counters = {
      now,
      add: (...args) => this.#call(({ counters }) => counters.add(...args)),
      read: (names) => this.#call(({ counters }) => counters.read(names)),
    };
    this.records = {
      now,
      update: (...args) => this.#call(({ records }) => records.update(...args)),
      read: (names) => this.#call(({ records }) => records.read(names)),
    };
  }

  get self(): Namespace {
    return this;
  }

  /** Calls `use` with the namespace itself: at once, or when its code is loaded and every waiting call has begun. */
  whenReady(use: (namespace: Namespace) => void): void {
    const now = this.#ready;
    if (now !== undefined) use(now);
    else
      this.#parts.code
        .load()
        .then((code) => use(this.#open(code)))
        .catch(() => {});
  }

  child(name: string): Namespace {
    let child = this.#children.get(name);
    if (child === undefined) {
      const open: DeferredParts<Code>["open"] = (code, face) => this.#open(code).child(name, face);
      child = new DeferredNamespace({ ...this.#parts, open }, this.changes);
      this.#children.set(name, child);
    }
    return child;
  }

  peek(key: string): unknown {
    return this.#ready?.peek(key);
  }

  own(value: unknown): unknown {
    const { copier } = this.#parts;
    if (!this.freezes) return copier.copy(value);
    return isMadeFrozen(value) ? value : frozen(copier.copy(value));
  }

  get(key: string, callback: ReadCallback<unknown>): void {
    this.#begin(
      (namespace) => namespace.get(key, callback),
      (error) => callback.failed(error),
    );
  }

  seek(key: string, callback: ReadCallback<Found | undefined>): void {
    this.#begin(
      (namespace) => namespace.seek?.(key, callback),
      (error) => callback.failed(error),
    );
  }

  find(key: string): Promise<Found | undefined> {
    return this.#call((namespace) => namespace.find(key));
  }

  getMany(keys: readonly string[]): Promise<Map<string, unknown>> {
    const asked = [...keys];
    return this.#call((namespace) => namespace.getMany(asked));
  }

  admit(key: string, options: AdmissionOptions): Promise<Admission> {
    return this.#call((namespace) => namespace.admit(key, options));
  }

  /** The value may change before it is encoded, so a copy waits in its place. */
  set(key: string, value: unknown, options: EntryOptions, observer?: WriteObserver): Promise<void> {
    const copy = this.#parts.copier.copy(value);
    this.changes.key(key);
    return this.#call((namespace) => namespace.set(key, copy, options, observer));
  }

  async setMany(entries: readonly (readonly [string, unknown])[], options: EntryOptions): Promise<void> {
    const copies = entries.map(([key, value]) => [key, this.#parts.copier.copy(value)] as const);
    for (const [key] of copies) this.changes.key(key);
    await this.#call((namespace) => namespace.setMany(copies, options));
  }

  delete(keys: readonly string[], unread?: boolean): Promise<number> {
    const list = [...keys];
    for (const key of list) this.changes.key(key);
    return this.#call((namespace) => namespace.delete(list, unread));
  }

  invalidateTags(tags: readonly string[]): Promise<void> {
    const list = [...tags];
    for (const tag of list) this.changes.tag(tag);
    return this.#call((namespace) => namespace.invalidateTags(list));
  }

  invalidateMatching(matches: (key: string) => boolean, signal?: AbortSignal): Promise<number> {
    this.changes.pattern(matches);
    return this.#call((namespace) => namespace.invalidateMatching(matches, signal));
  }

  clear(): Promise<void> {
    this.changes.everything();
    return this.#call((namespace) => namespace.clear());
  }

  inspect(key: string): Promise<Inspection | undefined> {
    return this.#call((namespace) => namespace.inspect(key));
  }

  examine(key: string): Promise<Examination | undefined> {
    return this.#call((namespace) => namespace.examine(key));
  }

  preview(key: string, most: number): Promise<Preview | undefined> {
    return this.#call((namespace) => namespace.preview(key, most));
  }

  sight(key: string): Promise<Sighting> {
    return this.#call((namespace) => namespace.sight(key));
  }

  async *scan(options?: EntryScanOptions): AsyncIterable<readonly Inspection[]> {
    const { scan } = await this.#call((namespace) => ({ scan: () => namespace.scan(options) }));
    yield* scan();
  }

  usage(exact: boolean, signal?: AbortSignal): Promise<NamespaceUsage> {
    return this.#call((namespace) => namespace.usage(exact, signal));
  }

  get #ready(): Namespace | undefined {
    return this.#parts.code.isReady ? this.#open(this.#parts.code.loaded as Code) : undefined;
  }

  #open(code: Code): Namespace {
    this.#opened ??= this.#parts.open(code, this);
    return this.#opened;
  }

  #begin(begin: (namespace: Namespace) => void, failed: (error: unknown) => void): void {
    const ready = this.#ready;
    if (ready !== undefined) begin(ready);
    else this.#parts.code.call((code) => begin(this.#open(code))).catch(failed);
  }

  #call<T>(begin: (namespace: Namespace) => T | Promise<T>): Promise<T> {
    return this.#parts.code.call((code) => begin(this.#open(code)));
  }
}
