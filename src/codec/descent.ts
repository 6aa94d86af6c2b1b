// Guards one walk through a value: how deep it goes, how much it has met, and whether it goes in circles.
import { CodecError } from "../core/errors.ts";
import type { CodecLimits } from "./options.ts";

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
/**
 * What an object takes in memory at the very least, so that as many as `maxBytes` has room for are too large in any form.
 * Without it, shared references to a few small objects could unfold into minutes of work before a byte too many is met.
 */
const LEAST_OBJECT_BYTES = 32;
/** So many objects are allowed under any limit: what they take when encoded decides. */
const FEWEST_OBJECTS = 1_024;

export class Descent {
  readonly #limits: CodecLimits;
  #bytesLeft: number;
  #objectsLeft: number;
  readonly #ancestors: object[] = [];

  constructor(limits: CodecLimits) {
    this.#limits = limits;
    this.#bytesLeft = limits.maxBytes;
    this.#objectsLeft = Math.max(FEWEST_OBJECTS, limits.maxBytes / LEAST_OBJECT_BYTES);
  }

  /** Call it before looking into `part`, which lies under `depth` others. */
  enter(part: object, depth: number): void {
    if (depth >= this.#limits.maxDepth) refuse();
    if (depth >= UNTRACKED_DEPTH) this.#track(part, depth - UNTRACKED_DEPTH);
  }

  /** Call it before anything is done about an object, whether it has parts or not. */
  meet(): void {
    if (--this.#objectsLeft < 0) throw tooLarge(this.#limits);
  }

  /** For walks that write nothing: what is copied or kept, at no more bytes than it takes when encoded. */
  count(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) throw tooLarge(this.#limits);
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
