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
const UNSUSPECTED_OBJECTS = 4_096;
const UNSUSPECTED_BYTES = 1024 * 1024;

export class Descent {
  readonly #limits: CodecLimits;
  readonly #root: unknown;
  /** How many more there may be before the walk looks closer, or ends. */
  #objectsLeft: number;
  #bytesLeft: number;
  #hasLooked = false;
  readonly #ancestors: object[] = [];

  /** `root`: what is walked through; undefined where it is known to be within the limits. */
  constructor(limits: CodecLimits, root: unknown) {
    this.#limits = limits;
    this.#root = root;
    this.#objectsLeft = Math.min(mostObjects(limits), UNSUSPECTED_OBJECTS);
    this.#bytesLeft = Math.min(limits.maxBytes, UNSUSPECTED_BYTES);
  }

  /** Call it before looking into `part`, which lies under `depth` others. */
  enter(part: object, depth: number): void {
    if (depth >= this.#limits.maxDepth) refuse();
    if (depth >= UNTRACKED_DEPTH) this.#track(part, depth - UNTRACKED_DEPTH);
  }

  /** Call it before anything is done about an object, whether it has parts or not. */
  meet(): void {
    if (--this.#objectsLeft < 0) this.#look();
  }

  /** For walks that write nothing: what is copied or kept, at no more bytes than it takes when encoded. */
  count(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) this.#look();
  }

  #look(): void {
    if (!this.#hasLooked) {
      this.#hasLooked = true;
      const most: Amount = { objects: mostObjects(this.#limits), bytes: this.#limits.maxBytes };
      this.#objectsLeft += Math.max(0, most.objects - UNSUSPECTED_OBJECTS);
      this.#bytesLeft += Math.max(0, most.bytes - UNSUSPECTED_BYTES);
      if (this.#root !== undefined) this.#lookAhead(most);
    }
    if (this.#objectsLeft < 0 || this.#bytesLeft < 0) throw tooLarge(this.#limits);
  }

  #lookAhead(most: Amount): void {
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

function mostObjects({ maxBytes }: CodecLimits): number {
  return Math.max(FEWEST_OBJECTS, Math.floor(maxBytes / LEAST_OBJECT_BYTES));
}

export function tooLarge(limits: CodecLimits): CodecError {
  return new CodecError(
    "VALUE_TOO_LARGE",
    `The value takes more than ${limits.maxBytes} bytes, the limit for one value.`,
  );
}
