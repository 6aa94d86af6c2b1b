// Guards one walk through a value: how deep it goes, how much it has met, and whether it goes in circles.
import { CodecError } from "../core/errors.ts";
import type { CodecLimits } from "./options.ts";
import { type Amount, unfold } from "./unfolding.ts";

/**
 * Thrown inside a walk at a part that cannot be stored, and never seen outside the codec: the walks keep no path, so
 * that they stay fast; refusal.ts walks again and finds it.
 */
class WalkRefused extends Error {}

const WALK_REFUSED = new WalkRefused("A part of the value cannot be stored.");

export function refuse(): never {
  throw WALK_REFUSED;
}

/** Ancestors above this depth are not remembered: a circle is noticed when it comes round below it. */
const UNTRACKED_DEPTH = 8;
/** What an object takes in memory at the very least, whatever it takes when encoded. */
const LEAST_OBJECT_BYTES = 32;
/** So many objects are allowed under any limit. */
const FEWEST_OBJECTS = 1_024;
/** After so many objects or bytes the walk finds out whether it will end within the limits, before it does the work. */
const UNSUSPECTED: Amount = { objects: 4_096, bytes: 1024 * 1024 };

export class Descent {
  readonly #limits: CodecLimits;
  readonly #most: Amount;
  readonly #root: unknown;
  #objects = 0;
  #bytes = 0;
  /** How far the walk may go before it looks closer, or ends. */
  #until: Amount;
  readonly #ancestors: object[] = [];

  /** `root`: what is walked through; undefined where it is known to be within the limits. */
  constructor(limits: CodecLimits, root: unknown) {
    this.#limits = limits;
    this.#most = {
      objects: Math.max(FEWEST_OBJECTS, limits.maxBytes / LEAST_OBJECT_BYTES),
      bytes: limits.maxBytes,
    };
    this.#root = root;
    this.#until = root === undefined ? this.#most : UNSUSPECTED;
  }

  /** Call it before looking into `part`, which lies under `depth` others. */
  enter(part: object, depth: number): void {
    if (depth >= this.#limits.maxDepth) refuse();
    if (depth >= UNTRACKED_DEPTH) this.#track(part, depth - UNTRACKED_DEPTH);
  }

  /** Call it before anything is done about an object, whether it has parts or not. */
  meet(): void {
    if (++this.#objects > this.#until.objects) this.#look();
  }

  /** For walks that write nothing: what is copied or kept, at no more bytes than it takes when encoded. */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#until.bytes) this.#look();
  }

  #look(): void {
    const most = this.#most;
    if (this.#objects > most.objects || this.#bytes > most.bytes) throw tooLarge(this.#limits);
    this.#until = most;
    const unfolding = unfold(this.#root, most, this.#limits.maxDepth);
    if (unfolding === "circular") refuse();
    if (unfolding === "beyond") throw tooLarge(this.#limits);
  }

  #track(part: object, place: number): void {
    const ancestors = this.#ancestors;
    for (let i = 0; i < place; i++) if (ancestors[i] === part) refuse();
    ancestors[place] = part;
  }
}

export function tooLarge(limits: CodecLimits): CodecError {
  return new CodecError(
    "VALUE_TOO_LARGE",
    `The value takes more than ${limits.maxBytes} bytes, the limit for one value.`,
  );
}
