// Explains why a value was refused: walks it again, slowly, and gives the path of the first part that cannot be stored.
// The walk is not recursive, because the engine's stack may be nearly exhausted.
import { CodecError } from "../core/errors.ts";
import { bytesOfBuffer, storedBytesOf } from "./binary-view.ts";
import { isHole, presentIndexes } from "./containers.ts";
import { errorFactsOf } from "./error-object.ts";
import { type Kind, kindOf, tagOf } from "./kind.ts";
import type { CodecLimits } from "./options.ts";
import { pathOf, type Step } from "./value-path.ts";

/** How many parts of a value that is too large are searched for a more specific reason. */
const SEARCHED_IF_TOO_LARGE = 10_000;

/** `thrown`: what stopped the fast walk. */
export function refusalOf(value: unknown, limits: CodecLimits, thrown: unknown): CodecError {
  const mostParts = thrown instanceof CodecError ? SEARCHED_IF_TOO_LARGE : Number.POSITIVE_INFINITY;
  const found = new Search(limits.maxDepth).run(value, mostParts);
  if (found !== undefined) return found;
  if (thrown instanceof CodecError) return thrown;
  const why = messageOf(thrown);
  return new CodecError("VALUE_UNSUPPORTED", `Cannot store the value at $: reading it failed: ${why}`, {
    path: "$",
    cause: thrown,
  });
}

interface Part {
  readonly step: Step;
  read(): unknown;
}

interface Level {
  readonly object: object;
  readonly parts: Generator<Part>;
}

class Search {
  readonly #maxDepth: number;
  /** The objects from the root to the current position; `#steps` lead from each to the next. */
  readonly #levels: Level[] = [];
  readonly #steps: Step[] = [];
  /** The same objects, with their index in `#levels`. */
  readonly #indexes = new Map<object, number>();
  /** Objects without a problem, with the greatest depth they were seen at: shared ones are searched once. */
  readonly #valid = new Map<object, number>();

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  run(root: unknown, mostParts: number): CodecError | undefined {
    if (root === undefined) return this.#unsupported("undefined", "Store null, or delete the key.");
    let found = this.#attempt(() => this.#check(root));
    for (let parts = 0; found === undefined && this.#levels.length > 0 && parts < mostParts; parts++) {
      found = this.#attempt(() => this.#proceed());
    }
    return found;
  }

  #attempt(search: () => CodecError | undefined): CodecError | undefined {
    try {
      return search();
    } catch (cause) {
      return this.#refused(`what is at ${pathOf(this.#steps)}: reading it threw: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  /** Checks the next part of the innermost object, or leaves that object. */
  #proceed(): CodecError | undefined {
    const depth = this.#levels.length - 1;
    const level = this.#levels[depth]!;
    this.#steps.length = depth;
    const next = level.parts.next();
    if (next.done === true) {
      this.#levels.pop();
      this.#indexes.delete(level.object);
      this.#valid.set(level.object, depth);
      return undefined;
    }
    this.#steps.push(next.value.step);
    return this.#check(next.value.read());
  }

  #check(value: unknown): CodecError | undefined {
    if (typeof value === "function") return this.#unsupported("a function");
    if (typeof value === "symbol") return this.#unsupported("a symbol");
    if (typeof value !== "object" || value === null) return undefined;
    const kind = kindOf(value);
    if (kind === "unsupported") return this.#unsupported(`a ${tagOf(value)} object`);
    const parts = partsOf(value, kind);
    return parts === undefined ? undefined : this.#enter(value, parts);
  }

  #enter(object: object, parts: Generator<Part>): CodecError | undefined {
    const depth = this.#levels.length;
    const place = this.#indexes.get(object);
    if (place !== undefined) {
      const target = pathOf(this.#steps.slice(0, place));
      return this.#refused(`the cyclic reference at ${pathOf(this.#steps)}: it leads back to ${target}.`);
    }
    if ((this.#valid.get(object) ?? -1) >= depth) return undefined;
    if (depth >= this.#maxDepth) {
      const path = pathOf(this.#steps);
      return new CodecError(
        "VALUE_TOO_LARGE",
        `The value is nested deeper than ${this.#maxDepth}, the limit, at ${path}.`,
        {
          path,
        },
      );
    }
    this.#levels.push({ object, parts });
    this.#indexes.set(object, depth);
    return undefined;
  }

  #unsupported(what: string, hint?: string): CodecError {
    return this.#refused(`${what} at ${pathOf(this.#steps)}.`, hint === undefined ? {} : { hint });
  }

  #refused(what: string, details: { hint?: string; cause?: unknown } = {}): CodecError {
    return new CodecError("VALUE_UNSUPPORTED", `Cannot store ${what}`, {
      path: pathOf(this.#steps),
      ...details,
    });
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The parts of an object in encoding order; undefined if it has none, in which case it is tested right away. */
function partsOf(value: object, kind: Kind): Generator<Part> | undefined {
  switch (kind) {
    case "plain":
    case "object":
      return propertyParts(value, Object.keys(value));
    case "array":
      return arrayParts(value as unknown[]);
    case "map":
      return mapParts(value as Map<unknown, unknown>);
    case "set":
      return setParts(value as Set<unknown>);
    case "error":
      return errorParts(value as Error);
    case "regexp":
      new RegExp((value as RegExp).source, (value as RegExp).flags);
      return undefined;
    case "buffer":
      bytesOfBuffer(value as ArrayBuffer);
      return undefined;
    case "view":
      storedBytesOf(value as ArrayBufferView, 0);
      return undefined;
    default:
      return undefined;
  }
}

function* propertyParts(value: object, keys: Iterable<string | number>): Generator<Part> {
  for (const key of keys) yield { step: key, read: () => (value as Record<string | number, unknown>)[key] };
}

function* arrayParts(value: readonly unknown[]): Generator<Part> {
  for (let i = 0; i < value.length; i++) {
    if (isHole(value, i)) {
      yield* propertyParts(value, presentIndexes(value));
      return;
    }
    yield { step: i, read: () => value[i] };
  }
}

function* mapParts(value: Map<unknown, unknown>): Generator<Part> {
  const entries: [unknown, unknown][] = [];
  Map.prototype.forEach.call(value, (part, key) => entries.push([key, part]));
  for (const [place, [key, part]] of entries.entries()) {
    yield { step: { mapKey: place }, read: () => key };
    yield { step: { mapValue: key, place }, read: () => part };
  }
}

function* setParts(value: Set<unknown>): Generator<Part> {
  const members: unknown[] = [];
  Set.prototype.forEach.call(value, (member) => members.push(member));
  for (const [place, member] of members.entries()) yield { step: { set: place }, read: () => member };
}

function* errorParts(value: Error): Generator<Part> {
  const facts = errorFactsOf(value);
  if (facts.hasCause) yield { step: "cause", read: () => facts.cause };
}
