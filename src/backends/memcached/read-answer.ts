// Answers to reads of records. They are classes for the same reason as `PendingCommand`.
import type { Failed, RecordTaker } from "../../core/backend.ts";
import { decodeRecord } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { ReadAnswer } from "./pending-command.ts";

type Found = StoreRecord | undefined;

/** One record. */
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

/** Records that are read together, complete when the last one has arrived. */
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
      return;
    }
    this.missing();
  }

  missing(): void {
    if (--this.#left === 0) this.#done(this.#records);
  }

  /** The first failure ends the batch; what the other parts become does not matter. */
  fail(error: unknown): void {
    if (this.#left <= 0) return;
    this.#left = 0;
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

/** A record and the stamps that are read with it, complete when the last of them has arrived. */
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
    if (this.#left <= 0) return;
    this.#left = 0;
    this.#taker.fail(error);
  }
}

/** One stamp for all records of a tick that need it. */
export class StampAnswer implements ReadAnswer {
  readonly #key: string;
  readonly #waiting: StampedRecord[];
  readonly #indexes: number[];

  constructor(key: string, stamped: StampedRecord, at: number) {
    this.#key = key;
    this.#waiting = [stamped];
    this.#indexes = [at];
  }

  add(stamped: StampedRecord, at: number): void {
    this.#waiting.push(stamped);
    this.#indexes.push(at);
  }

  found(bytes: Buffer, start: number, end: number): void {
    let record: Found;
    try {
      record = decodeRecord(bytes, this.#key, start, end);
    } catch (error) {
      this.failed(error);
      return;
    }
    this.#deliver(record?.kind === "stamp" ? record.version : undefined);
  }

  missing(): void {
    this.#deliver(undefined);
  }

  failed(error: unknown): void {
    for (const stamped of this.#waiting) stamped.failed(error);
  }

  #deliver(id: Token | undefined): void {
    for (let at = 0; at < this.#waiting.length; at++)
      (this.#waiting[at] as StampedRecord).stamp(this.#indexes[at] as number, id);
  }
}

/** A read that is sent again keeps its deadline over several lost connections. */
export class RepeatedRead implements ReadAnswer {
  readonly due: number;
  readonly #answer: ReadAnswer;

  constructor(answer: ReadAnswer, due: number) {
    this.#answer = answer;
    this.due = due;
  }

  found(bytes: Buffer, start: number, end: number): void {
    this.#answer.found(bytes, start, end);
  }

  missing(): void {
    this.#answer.missing();
  }

  failed(error: unknown): void {
    this.#answer.failed(error);
  }
}
