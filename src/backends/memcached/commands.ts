// Records moved by meta commands, wherever a key's server is.
import type { Failed, KeyedRecord, RecordTaker, SwapResult } from "../../core/backend.ts";
import { encodeRecord, RecordBytes } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { Connection } from "./connection.ts";
import { isHashed } from "./item-key.ts";
import { isHarmlessLater, lifetimeToken } from "./lifetime.ts";
import type { MetaReply } from "./meta-reader.ts";
import type { Place } from "./node.ts";
import { CommandPending, READ, type ReadAnswer, STORED } from "./pending-command.ts";
import { ManyRecords, PartAnswer, RecordAnswer, StampAnswer, StampedRecord } from "./read-answer.ts";
import { type Next, recordIn, swapRecord } from "./swap.ts";

type Found = StoreRecord | undefined;

export interface Places {
  placeOf(key: string): Place;
  /** Whether the store's time is known so well that expiry in a record is held to exactly. */
  isTimeClose(): boolean;
}

/** Reads and expires it in one step: handed to one caller only, and gone for all others. */
const TAKE = " b v T-1";
const TOUCH = " b";

export class MemcachedCommands {
  readonly #places: Places;

  constructor(places: Places) {
    this.#places = places;
  }

  read(key: string): Promise<Found> {
    return new Promise((resolve, reject) => {
      const take = (record: Found): boolean => {
        resolve(record);
        return true;
      };
      this.readThen(key, { take, fail: reject });
    });
  }

  readThen(key: string, taker: RecordTaker): void {
    this.#read(key, new RecordAnswer(key, taker));
  }

  /** A record and the ids of stamps, in one round trip. */
  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const sealed = new StampedRecord(key, stamps.length, taker);
    this.#read(key, sealed);
    for (let at = 0; at < stamps.length; at++) this.#readStamp(stamps[at] as string, sealed, at);
  }

  readMany(keys: readonly string[]): Promise<readonly Found[]> {
    return new Promise((resolve, reject) => {
      const many = new ManyRecords(keys, resolve, reject);
      for (let at = 0; at < keys.length; at++) this.#read(keys[at] as string, new PartAnswer(many, at));
    });
  }

  write(item: KeyedRecord): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(item, resolve, reject));
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    const { key } = item;
    const place = this.#places.placeOf(key);
    const send = (connection: Connection): void => {
      try {
        connection.store(key, ...this.#item(place, item, ""), new CommandPending(STORED, done, failed));
      } catch (error) {
        failed(error);
      }
    };
    const { connection } = place.carrier;
    if (connection !== undefined) send(connection);
    else place.carrier.whenUp(send, failed);
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  swap(key: string, expected: Token | undefined, next: Next | undefined): Promise<SwapResult> {
    const place = this.#places.placeOf(key);
    return this.#with(place, async (connection) =>
      swapRecord({
        connection,
        key,
        expected,
        next,
        store: (item, flags) => connection.stored(key, ...this.#item(place, { key, ...item }, flags)),
      }),
    );
  }

  take(key: string): Promise<Found> {
    return new Promise((resolve, reject) => {
      const told = (reply: MetaReply): void => {
        try {
          resolve(reply.code === "VA" ? recordIn(reply, key) : undefined);
        } catch (error) {
          reject(error);
        }
      };
      this.#places
        .placeOf(key)
        .carrier.whenUp(
          (connection) => connection.send("mg", key, TAKE, new CommandPending(READ, told, reject)),
          reject,
        );
    });
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async touch(keys: readonly string[]): Promise<void> {
    await Promise.all(
      keys.map((key) =>
        this.#with(this.#places.placeOf(key), (connection) => connection.command("mg", key, TOUCH)),
      ),
    );
  }

  #read(key: string, answer: ReadAnswer): void {
    const { carrier } = this.#places.placeOf(key);
    const { connection } = carrier;
    if (connection !== undefined) connection.read(key, answer);
    else
      carrier.whenUp(
        (opened) => opened.read(key, answer),
        (error) => answer.failed(error),
      );
  }

  /** Many ask for the same stamps in one tick: each of these is read and decoded once. */
  #readStamp(key: string, sealed: StampedRecord, at: number): void {
    const reading = this.#places.placeOf(key).carrier.connection?.reading(key);
    if (reading instanceof StampAnswer) reading.add(sealed, at);
    else this.#read(key, new StampAnswer(key, sealed, at));
  }

  #with<T>({ carrier }: Place, work: (connection: Connection) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      carrier.whenUp((connection) => work(connection).then(resolve, reject), reject);
    });
  }

  /** Flags and bytes of a record that is stored. */
  #item(place: Place, { key, record, lifetimeMs }: KeyedRecord, flags: string) {
    const data = isHashed(key) ? encodeRecord(record, { withKey: true }) : new RecordBytes(record);
    return [` b${this.#lifetime(place, record, lifetimeMs)}${flags}`, data] as const;
  }

  #lifetime(place: Place, record: StoreRecord, lifetimeMs: number): string {
    if (lifetimeMs === Number.POSITIVE_INFINITY) return "";
    const isMore = isHarmlessLater(record) || this.#places.isTimeClose();
    return ` T${lifetimeToken(lifetimeMs, isMore, place.serverNow())}`;
  }
}
