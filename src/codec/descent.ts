// Limits one walk through a value: its depth, the objects and bytes it may visit, and cycles.
import { CodecError } from "../core/errors.ts";
import type { CodecLimits } from "./options.ts";
import { type Size, unfold } from "./unfolding.ts";

/**
 * Thrown by a walk at a part that cannot be stored; it never leaves the codec. The fast walks keep no path: refusal.ts
 * walks again to find it.
 */
class WalkRefused extends Error {}

const WALK_REFUSED = new WalkRefused("a part of the value cannot be stored");

export function refuse(): never {
  throw WALK_REFUSED;
}

/** Ancestors above this depth are not tracked: a cycle is detected once it repeats below it. */
const UNTRACKED_DEPTH = 8;
/** The least memory an object takes, however small its encoding. */
const LEAST_OBJECT_BYTES = 32;
/** Allowed under any limit. */
const FEWEST_OBJECTS = 1_024;
/** After this many objects or bytes the walk first checks whether the whole value is within the limits. */
const UNCHECKED_OBJECTS = 4_096;
const UNCHECKED_BYTES = 1024 * 1024;

export class Descent {
  readonly #limits: CodecLimits;
  readonly #root: unknown;
  /** How many more there may be before the walk checks ahead, or ends. */
  #objectsLeft: number;
  #bytesLeft: number;
  #hasChecked = false;
  readonly #ancestors: object[] = [];

  /** `root`: the value being walked; undefined if it is known to be within the limits. */
  constructor(limits: CodecLimits, root: unknown) {
    this.#limits = limits;
    this.#root = root;
    this.#objectsLeft = Math.min(mostObjects(limits), UNCHECKED_OBJECTS);
    this.#bytesLeft = Math.min(limits.maxBytes, UNCHECKED_BYTES);
  }

  /** Call it before visiting the parts of `part`, which is nested `depth` levels deep. */
  enter(part: object, depth: number): void {
    if (depth >= this.#limits.maxDepth) refuse();
    if (depth >= UNTRACKED_DEPTH) this.#track(part, depth - UNTRACKED_DEPTH);
  }

  /** Call it for every object before processing it. */
  countObject(): void {
    if (--this.#objectsLeft < 0) this.#checkLimits();
  }

  /** For walks that write no bytes: counts at most as many as the encoding would take. */
  count(bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) this.#checkLimits();
  }

  #checkLimits(): void {
    if (!this.#hasChecked) {
      this.#hasChecked = true;
      const most: Size = { objects: mostObjects(this.#limits), bytes: this.#limits.maxBytes };
      this.#objectsLeft += Math.max(0, most.objects - UNCHECKED_OBJECTS);
      this.#bytesLeft += Math.max(0, most.bytes - UNCHECKED_BYTES);
      if (this.#root !== undefined) this.#checkAhead(most);
    }
    if (this.#objectsLeft < 0 || this.#bytesLeft < 0) throw tooLarge(this.#limits);
  }

  #checkAhead(most: Size): void {
    const unfolding = unfold(this.#root, most, this.#limits.maxDepth);
    if (unfolding === "cyclic") refuse();
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
