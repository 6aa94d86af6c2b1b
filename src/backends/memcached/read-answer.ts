// Who waits for records that are read. Classes for the same reason as `Pending`.
import type { Failed, RecordTaker } from "../../core/backend.ts";
import { decodeRecord } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { ReadAnswer } from "./pending-command.ts";

type Found = StoreRecord | undefined;

/** Of one record. */
export class RecordAnswer implements ReadAnswer {
  readonly #key: string;
  readonly #taker: RecordTaker;

  constructor(key: string, taker: RecordTaker) {
    this.#key = key;
    this.#taker = taker;
  }

  found(bytes: Buffer, start: number, end: number): void {
    let record: Found;
    try {
      record = decodeRecord(bytes, this.#key, start, end);
    } catch (error) {
      this.#taker.fail(error);
      return;
    }
    this.#taker.take(record);
  }

  missing(): void {
    this.#taker.take(undefined);
  }

  failed(error: unknown): void {
    this.#taker.fail(error);
  }
}

/** Records that are asked for together, complete when the last one is there. */
export class ManyRecords {
  readonly #keys: readonly string[];
  readonly #records: Found[];
  readonly #done: (records: readonly Found[]) => void;
  readonly #failed: Failed;
  #left: number;

  constructor(keys: readonly string[], done: (records: readonly Found[]) => void, failed: Failed) {
    this.#keys = keys;
    this.#records = new Array<Found>(keys.length).fill(undefined);
    this.#done = done;
    this.#failed = failed;
    this.#left = keys.length;
    if (this.#left === 0) done(this.#records);
  }

  found(at: number, bytes: Buffer, start: number, end: number): void {
    try {
      this.#records[at] = decodeRecord(bytes, this.#keys[at] as string, start, end);
    } catch (error) {
      this.fail(error);
    }
    this.missing();
  }

  missing(): void {
    if (--this.#left === 0) this.#done(this.#records);
  }

  fail(error: unknown): void {
    this.#failed(error);
  }
}

export class PartAnswer implements ReadAnswer {
  readonly #many: ManyRecords;
  readonly #at: number;

  constructor(many: ManyRecords, at: number) {
    this.#many = many;
    this.#at = at;
  }

  found(bytes: Buffer, start: number, end: number): void {
    this.#many.found(this.#at, bytes, start, end);
  }

  missing(): void {
    this.#many.missing();
  }

  failed(error: unknown): void {
    this.#many.fail(error);
  }
}

/** A record and the stamps that are read with it, complete when the last of them is there. */
export class StampedRecord implements ReadAnswer {
  readonly #key: string;
  readonly #taker: RecordTaker;
  readonly #stamps: (Token | undefined)[] = [];
  #record: Found;
  #left: number;

  constructor(key: string, stamps: number, taker: RecordTaker) {
    this.#key = key;
    this.#taker = taker;
    this.#left = stamps + 1;
  }

  found(bytes: Buffer, start: number, end: number): void {
    try {
      this.#record = decodeRecord(bytes, this.#key, start, end);
    } catch (error) {
      this.failed(error);
      return;
    }
    this.missing();
  }

  stamp(at: number, id: Token | undefined): void {
    this.#stamps[at] = id;
    this.missing();
  }

  missing(): void {
    if (--this.#left === 0) this.#taker.take(this.#record, this.#stamps);
  }

  failed(error: unknown): void {
    this.#left = -1;
    this.#taker.fail(error);
  }
}

/** One stamp for everybody who reads it in a tick. */
export class StampAnswer implements ReadAnswer {
  readonly #key: string;
  readonly #waiting: StampedRecord[];
  readonly #places: number[];

  constructor(key: string, sealed: StampedRecord, at: number) {
    this.#key = key;
    this.#waiting = [sealed];
    this.#places = [at];
  }

  add(sealed: StampedRecord, at: number): void {
    this.#waiting.push(sealed);
    this.#places.push(at);
  }

  found(bytes: Buffer, start: number, end: number): void {
    let record: Found;
    try {
      record = decodeRecord(bytes, this.#key, start, end);
    } catch (error) {
      this.failed(error);
      return;
    }
    this.#tell(record?.kind === "stamp" ? record.version : undefined);
  }

  missing(): void {
    this.#tell(undefined);
  }

  failed(error: unknown): void {
    for (const sealed of this.#waiting) sealed.failed(error);
  }

  #tell(id: Token | undefined): void {
    for (let at = 0; at < this.#waiting.length; at++)
      (this.#waiting[at] as StampedRecord).stamp(this.#places[at] as number, id);
  }
}
