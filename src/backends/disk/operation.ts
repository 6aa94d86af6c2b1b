// The operations that change the store. Each is planned from a snapshot right before its commit.
import type { Failed, KeyedRecord, SwapResult } from "../../core/backend.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { type Change, putRecord, removeRecord } from "./change.ts";
import { type DiskKey, recordKey } from "./layout/disk-key.ts";
import {
  comparable,
  decodeStored,
  encodeStored,
  expiryOf,
  metaIn,
  metaOf,
  type RecordMeta,
} from "./layout/stored-record.ts";

/** What an operation sees when it is planned. */
export interface View {
  readonly now: number;
  /** From a snapshot of the latest commit. */
  get(key: DiskKey): Buffer | undefined;
  /** What is known of the record under a key, in the same snapshot; undefined for none or a damaged one. */
  meta(key: DiskKey): RecordMeta | undefined;
  /** Whether a write may keep the rows of the record it replaces: the commit holds only if that one is still there. */
  readonly keepsRows: boolean;
  /** What an earlier operation of the same commit writes. */
  pendingWrite(key: string): RecordMeta | undefined;
}

/** The outcome of planning: a change, or nothing to do. */
export interface Plan {
  readonly change: Change | undefined;
  /** What is stored afterwards, if that is certain. */
  readonly result?: RecordMeta;
}

export interface Operation {
  /** The key it concerns. One commit has at most one operation per key, except for writes after a write. */
  readonly key: string | undefined;
  readonly isWrite: boolean;
  plan(view: View): Plan;
  /** The change is committed, or there was none. Returns false if the operation must be planned again. */
  committed(held: boolean): boolean;
  failed(error: unknown): void;
}

const NOTHING: Plan = { change: undefined };

export class WriteOperation implements Operation {
  readonly key: string;
  readonly isWrite = true;
  readonly #item: KeyedRecord;
  readonly #done: () => void;
  readonly failed: Failed;

  constructor(item: KeyedRecord, done: () => void, failed: Failed) {
    this.key = item.key;
    this.#item = item;
    this.#done = done;
    this.failed = failed;
  }

  plan(view: View): Plan {
    const key = recordKey(this.key);
    const before = view.pendingWrite(this.key) ?? view.meta(key);
    const next = encodeStored(key, this.#item, view.now, view.keepsRows ? before : undefined);
    return { change: putRecord(key, next, before), result: next };
  }

  committed(): boolean {
    this.#done();
    return true;
  }
}

export class SwapOperation implements Operation {
  readonly key: string;
  readonly isWrite = false;
  readonly failed: Failed;
  readonly #expected: Token | undefined;
  readonly #next: Omit<KeyedRecord, "key"> | undefined;
  readonly #done: (result: SwapResult) => void;
  #lost: SwapResult | undefined;

  constructor(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
    done: (result: SwapResult) => void,
    failed: Failed,
  ) {
    this.key = key;
    this.#expected = expected;
    this.#next = next;
    this.#done = done;
    this.failed = failed;
  }

  plan(view: View): Plan {
    const key = recordKey(this.key);
    const bytes = view.get(key);
    const present = presentIn(bytes, this.key, view.now);
    if (present?.version !== this.#expected) {
      this.#lost = { won: false, current: present };
      return NOTHING;
    }
    const before = metaIn(bytes);
    if (this.#next === undefined)
      return before === undefined ? NOTHING : { change: removeRecord(key, before) };
    const next = encodeStored(key, { key: this.key, ...this.#next }, view.now);
    const version = before === undefined ? null : comparable(before.version);
    return { change: putRecord(key, next, before, { key, version }) };
  }

  committed(held: boolean): boolean {
    if (held) this.#done(this.#lost ?? { won: true });
    return held;
  }
}

export class TakeOperation implements Operation {
  readonly key: string;
  readonly isWrite = false;
  readonly failed: Failed;
  readonly #done: (record: StoreRecord | undefined) => void;
  #taken: StoreRecord | undefined;
  #damage: unknown;

  constructor(key: string, done: (record: StoreRecord | undefined) => void, failed: Failed) {
    this.key = key;
    this.#done = done;
    this.failed = failed;
  }

  plan(view: View): Plan {
    const key = recordKey(this.key);
    const bytes = view.get(key);
    try {
      this.#taken = presentIn(bytes, this.key, view.now);
      if (bytes === undefined || this.#taken === undefined) return NOTHING;
      return { change: removeRecord(key, metaOf(bytes)) };
    } catch (error) {
      // A damaged record is removed too; its index rows are removed when the sweep or eviction finds them.
      this.#damage = error;
      return { change: { puts: [], removals: [key] } };
    }
  }

  committed(held: boolean): boolean {
    if (this.#damage !== undefined) this.failed(this.#damage);
    else if (held) this.#done(this.#taken);
    return held;
  }
}

/** A change planned earlier. Cleanup needs no failure callback: the next sweep finds the same rows again. */
export class ChangeOperation implements Operation {
  readonly key: string | undefined;
  readonly isWrite = false;
  readonly failed: Failed;
  readonly #change: Change;
  readonly #done: (held: boolean) => void;

  constructor(
    key: string | undefined,
    change: Change,
    done: (held: boolean) => void = () => {},
    failed: Failed = () => {},
  ) {
    this.key = key;
    this.#change = change;
    this.#done = done;
    this.failed = failed;
  }

  plan(): Plan {
    return { change: this.#change };
  }

  committed(held: boolean): boolean {
    this.#done(held);
    return true;
  }
}

/** The record in these bytes, unless it has expired or belongs to another key. Throws CodecError. */
function presentIn(bytes: Buffer | undefined, key: string, now: number): StoreRecord | undefined {
  return bytes === undefined || expiryOf(bytes) <= now ? undefined : decodeStored(bytes, key);
}
