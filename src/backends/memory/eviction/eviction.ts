// The eviction policy: decides which entry is evicted when the table is full.
//
// A new entry enters a small FIFO window. All others form the main part, scanned by a clock hand over the slot numbers.
// Every slot counts its uses, up to seven. When the window is full, its oldest entry replaces a main entry if one of the
// next sixteen under the hand has at least two uses less; otherwise it is evicted itself. So one-off keys and long loops
// pass through the window and leave the main part alone. An evicted key is remembered with its count and its last use
// (ghost.ts). When it returns, it has its count back and replaces a main entry at once, without passing through the window,
// either by that comparison or on trial: it was away for less than half as long as the main entry is unused, as LIRS compares
// them. Trials go on while the keys let in are used more often than the keys they replaced return; otherwise only one in
// sixteen is made. Counts are halved whenever the counts of returning keys add up to about one use per entry: a sign that
// the cache holds the wrong keys, rare when it holds the right ones.
//
// The window grows while keys that it evicted recently return more often than once in 64 hits: recency then matters more
// than frequency. It also grows while more keys return that a window of half the slots would have kept than there are hits.
// Growth that costs hits and earns none is undone. Otherwise it shrinks, unless its older half has at least half as many
// hits as its size would have on average: those would be lost.
//
// A hit raises the count of its slot and notes the time. The parts come from S3-FIFO (Yang et al., SOSP 2023), TinyLFU
// (Einziger et al., ACM ToS 2017), LIRS (Jiang and Zhang, SIGMETRICS 2002) and CLOCK; docs/decisions/0002-memory-eviction.md
// and docs/decisions/0033-eviction-controller.md have the measurements and the rejected alternatives.
import { Fifo } from "./fifo.ts";
import {
  type Departure,
  Ghost,
  leftWindowRecently,
  madeRoomForTrial,
  recalledCount,
  recalledIdle,
  wasPushedOut,
  wouldFitHalf,
} from "./ghost.ts";

/** What the policy needs to know of the entry in a slot. */
export interface EvictionHost {
  /** 32-bit hash of its key and namespace. */
  hashOf(slot: number): number;
  /** Whether it is expired or dead. */
  isSpent(slot: number): boolean;
}

// A slot's state: 0 while it is free.
const COUNT_MASK = 0x0f;
const IN_WINDOW = 0x10;
const OCCUPIED = 0x20;
const MARKED = 0x40;
/** In the window: in its older half. In the main part: on trial, not used since. */
const NOTED = 0x80;

/** Counts are in half uses, so that one use survives a halving. */
const ONE_USE = 2;
const MOST_USES = 7 * ONE_USE;
/** How much a newcomer's count must exceed that of the entry it replaces; otherwise the keys of a loop replace each other. */
const LEAD = ONE_USE;
/** How many main entries a newcomer is compared with. */
const PROBES = 16;
/** Slots examined in search of main entries before an entry of the window is evicted instead. */
const MOST_STEPS = 4 * PROBES;
/** Counts are halved when returning keys bring back this much per entry. */
const HALVING_COUNT = 1.25 * ONE_USE;

const SMALLEST_WINDOW = 0.01;
const LARGEST_WINDOW = 0.8;
const WINDOW_STEP = 1 / 64;
/** One premature eviction from the window weighs as much as this many hits. */
const HITS_PER_REGRET = 64;
/** The older half of the window must have this share of the hits that its size would have on average. */
const WORTHWHILE = 1 / 2;
/** Below this share it is worth nothing. */
const WORTHLESS = 1 / 8;
/** A period with this share of the hits of the one before had noticeably less. */
const NOTICEABLY_LESS = 0.9;
/** Periods without growth after the window has grown in vain: one, then twice as many each time, up to this. */
const LONGEST_PAUSE = 64;
/** How many times longer than a returning key was away a main entry must be unused to be replaced on trial. */
const LONGER_UNUSED = 2;
/** One in this many possible trials is made while they do not pay. */
const TRIALS_SKIPPED = 16;
/** What counts of the outcome of trials after each period. */
const TRIAL_DECAY = 7 / 8;
/** The window is adjusted after as many insertions as there are entries, and at least after these. */
const SHORTEST_PERIOD = 64;

const NONE = -1;

export class Eviction {
  readonly #host: EvictionHost;
  #capacity = 0;
  #states = new Uint8Array(0);
  /** The tick of the ghost at the last use; empty before the first eviction. */
  #lastUses = new Uint16Array(0);
  #entries = 0;
  /** Slots from here on were never used. */
  #used = 0;
  #hand = 0;
  /** The window from its oldest entry; also contains stale slots, whose entries left the window otherwise. */
  #queue = new Fifo();
  /** How many of the queue are in its older half. */
  #olderHalf = 0;
  #windowSize = 0;
  #windowShare = SMALLEST_WINDOW;
  /** Created at the first eviction: a store that never fills has nothing to remember. */
  #ghost: Ghost | undefined;
  #returned = 0;
  #hits = 0;
  #olderHits = 0;
  #regrets = 0;
  #lateRegrets = 0;
  #insertions = 0;
  /** The hits of the period after which the window has grown; 0 if it has not. */
  #hitsBeforeGrowth = 0;
  #pause = 0;
  #nextPause = 1;
  /** Keys on trial that were used, less those that returned after making room for one. */
  #trialsPaid = -1;
  #trialsSkipped = 0;
  /** Whether a main entry was chosen in favour of the next one to be admitted, and whether on trial. */
  #isAwaited = false;
  #isOnTrial = false;
  #madeRoom = NONE;

  constructor(host: EvictionHost) {
    this.#host = host;
  }

  /** Records a use, which stands for `hits` hits. */
  touch(slot: number, hits = 1): void {
    this.#hits += hits;
    let state = this.#states[slot]!;
    if ((state & NOTED) !== 0) {
      if ((state & IN_WINDOW) !== 0) this.#olderHits += hits;
      else {
        this.#trialsPaid++;
        state &= ~NOTED;
      }
    }
    if ((state & COUNT_MASK) < MOST_USES) state += ONE_USE;
    this.#states[slot] = state;
    if (this.#ghost !== undefined) this.#lastUses[slot] = this.#ghost.tick;
  }

  isOccupied(slot: number): boolean {
    return this.#states[slot] !== 0;
  }

  /** Adds a new entry. */
  admit(slot: number): void {
    this.#entries++;
    this.#used = Math.max(this.#used, slot + 1);
    const state = OCCUPIED | Math.min(MOST_USES, this.#recalled(slot) + ONE_USE);
    if (this.#ghost !== undefined) this.#lastUses[slot] = this.#ghost.tick;
    if (this.#isAwaited) {
      this.#states[slot] = this.#isOnTrial ? state | NOTED : state;
      this.#isAwaited = false;
      return;
    }
    this.#states[slot] = state | IN_WINDOW;
    this.#windowSize++;
    this.#queue.push(slot);
    if (this.#queue.length > 2 * this.#windowSize + SHORTEST_PERIOD) this.#tidyQueue();
    while (this.#windowSize > this.#windowTarget()) this.#promote(this.#oldest());
    this.#noteOlderHalf();
  }

  /**
   * Whether a full cache should not store an optional key: while the window is at its smallest, a newcomer would nearly
   * always be evicted unused. The key is remembered as if it had been stored, so it is accepted when it returns.
   */
  declines(hash: number): boolean {
    if (this.#ghost === undefined || this.#windowShare > SMALLEST_WINDOW) return false;
    if (this.#ghost.knowsFromNow(hash, ONE_USE)) return false;
    this.#countInsertion();
    return true;
  }

  /** The oldest entry of the window, which is evicted most often; NONE: it is not known yet. */
  get likely(): number {
    return this.#queue.length === 0 ? NONE : this.#queue.at(0);
  }

  /** Something of what the policy remembers of a key, to have it read in time. */
  sample(hash: number): number {
    return this.#ghost === undefined ? 0 : this.#ghost.sample(hash);
  }

  /**
   * The entry to evict, never `kept`; there must be another one. The caller then calls `leave`. `arriving` is the hash of the
   * key that needs the room, if it is a new one.
   */
  choose(kept: number, arriving?: number): number {
    this.#ghost ??= this.#newGhost();
    this.#madeRoom = NONE;
    if (arriving !== undefined && !this.#isAwaited) {
      const slot = this.#replaceable(arriving, this.#ghost, kept);
      if (slot !== NONE) return slot;
    }
    if (this.#windowSize >= this.#windowTarget()) {
      const newcomer = this.#oldest();
      if (newcomer !== kept) {
        if (this.#host.isSpent(newcomer)) return newcomer;
        const weaker = this.#weakerThan((this.#states[newcomer]! & COUNT_MASK) - LEAD, kept);
        if (weaker === NONE) return newcomer;
        this.#promote(newcomer);
        return weaker;
      }
      this.#promote(newcomer);
    }
    return this.#weakest(kept);
  }

  /** Removes an entry. `evicted`: it was evicted while live; only then does its return mean that it was missed. */
  leave(slot: number, evicted: boolean): void {
    const state = this.#states[slot]!;
    const inWindow = (state & IN_WINDOW) !== 0;
    if (this.#ghost !== undefined) {
      let departure: Departure = "itself";
      if (evicted) departure = inWindow ? "window" : slot === this.#madeRoom ? "trial" : "main";
      this.#ghost.remember(
        this.#host.hashOf(slot),
        state & COUNT_MASK,
        departure,
        this.#unused(slot, this.#ghost),
      );
    }
    this.#states[slot] = 0;
    if (inWindow) this.#windowSize--;
    this.#entries--;
  }

  /** Resizes to the capacity of the rows. The ghost depends on the number of slots, so a new one is created. */
  fit(capacity: number): void {
    if (capacity === this.#capacity) return;
    this.#capacity = capacity;
    // Whole words, for halving.
    const states = new Uint8Array(Math.ceil(capacity / 4) * 4);
    states.set(this.#states.subarray(0, Math.min(this.#used, states.length)));
    this.#states = states;
    if (this.#ghost === undefined) return;
    this.#ghost = new Ghost(capacity);
    this.#lastUses = new Uint16Array(capacity);
  }

  /** Forgets the order of an empty store. */
  reset(): void {
    this.#used = 0;
    this.#hand = 0;
    this.#queue = new Fifo();
    this.#olderHalf = 0;
  }

  #newGhost(): Ghost {
    this.#lastUses = new Uint16Array(this.#capacity);
    return new Ghost(this.#capacity);
  }

  /** Ticks since the last use of an entry. */
  #unused(slot: number, { tick }: Ghost): number {
    return (tick - this.#lastUses[slot]!) & 0xffff;
  }

  #windowTarget(): number {
    return Math.max(1, Math.floor(this.#entries * this.#windowShare));
  }

  /** The count that the key had when it left; also updates the statistics of returning keys. */
  #recalled(slot: number): number {
    if (this.#ghost === undefined) return 0;
    const recalled = this.#ghost.recall(this.#host.hashOf(slot), this.#windowTarget());
    const count = recalledCount(recalled);
    if (wasPushedOut(recalled)) this.#returned += count;
    if (leftWindowRecently(recalled)) this.#regrets++;
    if (wouldFitHalf(recalled)) this.#lateRegrets++;
    if (madeRoomForTrial(recalled)) this.#trialsPaid--;
    if (this.#returned >= this.#entries * HALVING_COUNT) this.#halve();
    this.#countInsertion();
    return count;
  }

  #countInsertion(): void {
    if (++this.#insertions >= Math.max(this.#entries, SHORTEST_PERIOD)) this.#adjustWindow();
  }

  #halve(): void {
    this.#returned = 0;
    this.#ghost?.halve();
    const words = new Uint32Array(this.#states.buffer, 0, Math.ceil(this.#used / 4));
    for (let at = 0; at < words.length; at++) {
      const word = words[at]!;
      words[at] = (word & 0xf0f0f0f0) | ((word >>> 1) & 0x07070707);
    }
  }

  #adjustWindow(): void {
    const hits = this.#hits;
    const average = (hits * this.#windowShare) / 2;
    const isTooSmall = this.#regrets * HITS_PER_REGRET > hits || this.#lateRegrets > hits;
    const before = this.#hitsBeforeGrowth;
    this.#hitsBeforeGrowth = 0;
    if (hits < before * NOTICEABLY_LESS && this.#olderHits <= average * WORTHLESS) {
      // As in a loop a little longer than the cache, whose keys return soon and are never hit in the window.
      this.#resizeWindow(-2 * WINDOW_STEP);
      this.#pause = this.#nextPause;
      this.#nextPause = Math.min(LONGEST_PAUSE, 2 * this.#nextPause);
    } else if (isTooSmall && this.#pause === 0) {
      this.#resizeWindow(WINDOW_STEP);
      this.#hitsBeforeGrowth = hits;
    } else {
      if (isTooSmall) this.#pause--;
      if (this.#olderHits <= average * WORTHWHILE) {
        this.#resizeWindow(-Math.min(WINDOW_STEP, this.#windowShare / 2));
      }
    }
    if (before > 0 && hits > before) this.#nextPause = 1;
    this.#hits = 0;
    this.#olderHits = 0;
    this.#regrets = 0;
    this.#lateRegrets = 0;
    this.#insertions = 0;
    this.#trialsPaid *= TRIAL_DECAY;
  }

  #resizeWindow(by: number): void {
    this.#windowShare = Math.min(LARGEST_WINDOW, Math.max(SMALLEST_WINDOW, this.#windowShare + by));
  }

  /** Takes the oldest window entry off the queue; its slot stays marked IN_WINDOW. */
  #oldest(): number {
    for (;;) {
      const slot = this.#queue.shift();
      if (this.#olderHalf > 0) this.#olderHalf--;
      if ((this.#states[slot]! & IN_WINDOW) !== 0) return slot;
    }
  }

  #promote(slot: number): void {
    this.#states[slot] = this.#states[slot]! & ~(IN_WINDOW | NOTED);
    this.#windowSize--;
  }

  /** Notes which entries have come into the older half of the window. */
  #noteOlderHalf(): void {
    const older = this.#queue.length - (this.#windowTarget() >> 1);
    for (; this.#olderHalf < older; this.#olderHalf++) {
      const slot = this.#queue.at(this.#olderHalf);
      const state = this.#states[slot]!;
      if ((state & IN_WINDOW) !== 0) this.#states[slot] = state | NOTED;
    }
  }

  /** Drops slots that have left the window, and the older occurrence of a slot that was reused. */
  #tidyQueue(): void {
    const marked: number[] = [];
    this.#queue.retain((slot) => {
      const state = this.#states[slot]!;
      if ((state & (IN_WINDOW | MARKED)) !== IN_WINDOW) return false;
      this.#states[slot] = state | MARKED;
      marked.push(slot);
      return true;
    });
    for (const slot of marked) this.#states[slot] = this.#states[slot]! & ~MARKED;
    this.#olderHalf = 0;
  }

  #advance(): number {
    const slot = this.#hand < this.#used ? this.#hand : 0;
    this.#hand = slot + 1;
    return slot;
  }

  #isMain(slot: number): boolean {
    return (this.#states[slot]! & (OCCUPIED | IN_WINDOW)) === OCCUPIED;
  }

  /** The main entry that a returning key replaces: a weaker one, or on trial one that is unused for long. */
  #replaceable(arriving: number, ghost: Ghost, kept: number): number {
    const recalled = ghost.find(arriving);
    const count = recalledCount(recalled) + ONE_USE;
    if (count <= LEAD) return NONE;
    const longest = LONGER_UNUSED * recalledIdle(recalled);
    const mayTry = this.#trialsPaid >= 0 || ++this.#trialsSkipped % TRIALS_SKIPPED === 0;
    let unused = NONE;
    for (let step = 0; step < PROBES; step++) {
      const slot = this.#advance();
      if (!this.#isMain(slot) || slot === kept) continue;
      const other = this.#states[slot]! & COUNT_MASK;
      if (other < count - LEAD) {
        this.#isAwaited = true;
        this.#isOnTrial = false;
        return slot;
      }
      if (mayTry && unused === NONE && other <= count + LEAD && this.#unused(slot, ghost) > longest)
        unused = slot;
    }
    if (unused === NONE) return NONE;
    this.#isAwaited = true;
    this.#isOnTrial = true;
    this.#madeRoom = unused;
    return unused;
  }

  /** The next main entry with a lower count, or one that is spent. */
  #weakerThan(count: number, kept: number): number {
    if (count <= 0) return NONE;
    for (let step = 0; step < PROBES; step++) {
      const slot = this.#advance();
      if (!this.#isMain(slot) || slot === kept) continue;
      if ((this.#states[slot]! & COUNT_MASK) < count || this.#host.isSpent(slot)) return slot;
    }
    return NONE;
  }

  /** The least used of the next main entries, or the oldest of the window if main entries are too sparse. */
  #weakest(kept: number): number {
    let weakest = NONE;
    let lowest = COUNT_MASK + 1;
    let found = 0;
    for (let step = 0; found < PROBES; step++) {
      if (step >= MOST_STEPS) {
        if (weakest !== NONE) break;
        if (this.#windowSize > 0) {
          const slot = this.#oldest();
          if (slot !== kept) return slot;
          this.#promote(slot);
        }
      }
      const slot = this.#advance();
      if (!this.#isMain(slot) || slot === kept) continue;
      found++;
      if (this.#host.isSpent(slot)) return slot;
      const count = this.#states[slot]! & COUNT_MASK;
      if (count < lowest) {
        lowest = count;
        weakest = slot;
      }
    }
    return weakest;
  }
}
