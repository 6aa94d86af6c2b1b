// The leader's heartbeat in the shared cache, by which followers know that invalidations arrive. No clocks are compared.
import type { Clock } from "../../core/clock.ts";
import { ConnectionError } from "../../core/errors.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import type { RecordStore } from "./feed-options.ts";

interface BeatRecord {
  /** Identifies the cache: its processes elect one leader among themselves. */
  readonly cache: string;
  /** A sequence of beats without a gap. */
  readonly sequence: string;
  readonly beat: number;
}

/** Seconds. After as long without a leader the cache gets another identity, which harms nothing. */
const RECORD_TTL = 3_600;

/** A follower's reading of a beat. */
interface Reading {
  readonly beat: number;
  readonly at: number;
}

export class Beats {
  readonly #store: RecordStore;
  readonly #key: string;
  readonly #clock: Clock;
  #sequence = newId();
  #beat = 0;
  #seen = "";
  /** Of the sequence seen, oldest first; each has a higher beat. */
  #readings: Reading[] = [];

  constructor(store: RecordStore, key: string, clock: Clock) {
    this.#store = store;
    this.#key = key;
    this.#clock = clock;
  }

  /** The identity of the cache, made if it has none. Rejects if the cache does not keep it. */
  async identity(): Promise<string> {
    const made: BeatRecord = { cache: newId(), sequence: "", beat: 0 };
    await this.#store.getOrSet(this.#key, async () => made, { ttl: RECORD_TTL });
    const kept = await this.#store.get<BeatRecord>(this.#key);
    if (kept === undefined) throw new ConnectionError("the cache does not keep the feed's record");
    return kept.cache;
  }

  /** A new leadership: followers must not join its beats to those before. */
  begin(): void {
    this.#sequence = newId();
    this.#beat = 0;
  }

  /**
   * Call it after a proof that began after the previous beat was confirmed. False: the cache has another identity by now,
   * and so perhaps another leader. A failing cache is no error: its followers notice.
   */
  async send(cache: string): Promise<boolean> {
    try {
      const kept = await this.#store.get<BeatRecord>(this.#key);
      if (kept !== undefined && kept.cache !== cache) return false;
      const record: BeatRecord = { cache, sequence: this.#sequence, beat: ++this.#beat };
      await this.#store.set(this.#key, record, { ttl: RECORD_TTL });
    } catch {
      // It may still arrive, behind later ones; those belong to another sequence.
      this.begin();
    }
    return true;
  }

  /**
   * A follower reads the beat. Returns a moment of its own clock at which every visible commit had been invalidated,
   * if that is proven: the proof of beat n began after beat n-1 was stored, so after any reading that shows an earlier one.
   */
  async receive(): Promise<number | undefined> {
    const at = this.#clock.now();
    const record = await this.#store.get<BeatRecord>(this.#key);
    if (record === undefined) return undefined;
    const { sequence, beat } = record;
    if (sequence !== this.#seen) {
      this.#seen = sequence;
      this.#readings = [];
    }
    const last = this.#readings.at(-1);
    // A beat that arrives late says nothing about the time of the reading.
    if (last !== undefined && beat < last.beat) return undefined;
    if (last?.beat === beat) this.#readings.pop();
    this.#readings.push({ beat, at });
    const before = this.#readings.findLastIndex((reading) => reading.beat <= beat - 2);
    const proven = this.#readings[before]?.at;
    this.#readings.splice(0, before);
    return proven;
  }
}

const newId = (): string => nodeCrypto().randomUUID();
