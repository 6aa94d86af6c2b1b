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

export class Descent {
  readonly #limits: CodecLimits;
  #partsLeft: number;
  readonly #ancestors: object[] = [];

  constructor(limits: CodecLimits) {
    this.#limits = limits;
    this.#partsLeft = limits.maxBytes;
  }

  /** Call it before looking into `part`, which lies under `depth` others. */
  enter(part: object, depth: number): void {
    if (depth >= this.#limits.maxDepth) refuse();
    if (depth >= UNTRACKED_DEPTH) this.#track(part, depth - UNTRACKED_DEPTH);
  }

  /**
   * A part takes at least one byte, so more parts than bytes allowed are too large in any form. For walks that write
   * nothing: without it a few shared references could unfold into more copies than memory holds.
   */
  count(parts: number): void {
    this.#partsLeft -= parts;
    if (this.#partsLeft < 0) throw tooLarge(this.#limits);
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
