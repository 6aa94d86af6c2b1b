// Says why a value was refused: walks it once more, slowly, and names the path of the first part that cannot be stored.
import { CodecError } from "../core/errors.ts";
import { errorFactsOf } from "./error-object.ts";
import { kindOf, tagOf } from "./kind.ts";
import type { CodecLimits } from "./options.ts";
import { isHole, presentIndexes } from "./sparse-array.ts";
import { pathOf, type Step } from "./value-path.ts";

/** `thrown` is what stopped the fast walk. */
export function refusalOf(value: unknown, limits: CodecLimits, thrown: unknown): CodecError {
  const found = new Search(limits.maxDepth).look(value);
  if (found !== undefined) return found;
  if (thrown instanceof CodecError) return thrown;
  return new CodecError(
    "VALUE_UNSUPPORTED",
    "Cannot store the value at $: it could not be read twice alike.",
    {
      path: "$",
      cause: thrown,
    },
  );
}

class Search {
  readonly #maxDepth: number;
  readonly #steps: Step[] = [];
  /** The objects on the way from the root, each with its depth. */
  readonly #ancestors = new Map<object, number>();
  /** Objects found sound, with the greatest depth they were seen at: shared ones are looked through once. */
  readonly #sound = new Map<object, number>();

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth;
  }

  look(value: unknown): CodecError | undefined {
    if (value === undefined) return this.#unsupported("undefined", "Store null, or delete the key.");
    return this.#part(value);
  }

  #part(value: unknown): CodecError | undefined {
    if (typeof value === "function") return this.#unsupported("a function");
    if (typeof value === "symbol") return this.#unsupported("a symbol");
    if (typeof value !== "object" || value === null) return undefined;
    try {
      return this.#object(value);
    } catch (cause) {
      return this.#unreadable(cause);
    }
  }

  #object(value: object): CodecError | undefined {
    const kind = kindOf(value);
    if (kind === "unsupported") return this.#unsupported(`a ${tagOf(value)} object`);
    if (kind === "date" || kind === "boxed") return undefined;
    if (kind === "regexp") {
      new RegExp((value as RegExp).source, (value as RegExp).flags);
      return undefined;
    }
    if (kind === "buffer") {
      new Uint8Array(value as ArrayBuffer);
      return undefined;
    }
    if (kind === "view") {
      const { buffer, byteOffset, byteLength } = value as ArrayBufferView;
      new Uint8Array(buffer, byteOffset, byteLength);
      return undefined;
    }
    const depth = this.#ancestors.size;
    const above = this.#ancestors.get(value);
    if (above !== undefined) return this.#cyclic(above);
    if ((this.#sound.get(value) ?? -1) >= depth) return undefined;
    if (depth >= this.#maxDepth) return this.#tooDeep();
    this.#ancestors.set(value, depth);
    const found = this.#inside(value, kind);
    this.#ancestors.delete(value);
    this.#sound.set(value, depth);
    return found;
  }

  #inside(
    value: object,
    kind: "plain" | "object" | "array" | "map" | "set" | "error",
  ): CodecError | undefined {
    switch (kind) {
      case "plain":
      case "object":
        return this.#first(
          Object.keys(value),
          (key) => key,
          (key) => (value as Record<string, unknown>)[key],
        );
      case "array":
        return this.#array(value as unknown[]);
      case "map":
        return this.#map(value as Map<unknown, unknown>);
      case "set": {
        const items: unknown[] = [];
        Set.prototype.forEach.call(value, (item) => items.push(item));
        return this.#first(
          items.keys(),
          (place) => ({ set: place }),
          (place) => items[place],
        );
      }
      case "error": {
        const facts = errorFactsOf(value as Error);
        return facts.hasCause ? this.#at("cause", () => facts.cause) : undefined;
      }
    }
  }

  #array(value: readonly unknown[]): CodecError | undefined {
    for (let i = 0; i < value.length; i++) {
      if (value[i] === undefined && isHole(value, i)) {
        return this.#first(
          presentIndexes(value),
          (index) => index,
          (index) => value[index],
        );
      }
      const found = this.#at(i, () => value[i]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #map(value: Map<unknown, unknown>): CodecError | undefined {
    const entries: [unknown, unknown][] = [];
    Map.prototype.forEach.call(value, (part, key) => entries.push([key, part]));
    for (const [place, [key, part]] of entries.entries()) {
      const found = this.#at({ mapKey: place }, () => key) ?? this.#at({ mapValue: key, place }, () => part);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #first<K>(keys: Iterable<K>, step: (key: K) => Step, read: (key: K) => unknown): CodecError | undefined {
    for (const key of keys) {
      const found = this.#at(step(key), () => read(key));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #at(step: Step, read: () => unknown): CodecError | undefined {
    this.#steps.push(step);
    let found: CodecError | undefined;
    try {
      found = this.#part(read());
    } catch (cause) {
      found = this.#unreadable(cause);
    }
    this.#steps.pop();
    return found;
  }

  #unsupported(what: string, hint?: string): CodecError {
    return this.#refusal("VALUE_UNSUPPORTED", (path) => `Cannot store ${what} at ${path}.`, { hint });
  }

  #unreadable(cause: unknown): CodecError {
    const why = cause instanceof Error ? cause.message : String(cause);
    return this.#refusal(
      "VALUE_UNSUPPORTED",
      (path) => `Cannot store what is at ${path}: reading it threw: ${why}`,
      {
        cause,
      },
    );
  }

  #cyclic(above: number): CodecError {
    const target = pathOf(this.#steps.slice(0, above));
    return this.#refusal(
      "VALUE_UNSUPPORTED",
      (path) => `Cannot store the cyclic reference at ${path}: it leads back to ${target}.`,
    );
  }

  #tooDeep(): CodecError {
    return this.#refusal(
      "VALUE_TOO_LARGE",
      (path) => `The value is nested deeper than ${this.#maxDepth}, the limit, at ${path}.`,
    );
  }

  #refusal(
    code: "VALUE_UNSUPPORTED" | "VALUE_TOO_LARGE",
    message: (path: string) => string,
    details: { hint?: string | undefined; cause?: unknown } = {},
  ): CodecError {
    const path = pathOf(this.#steps);
    const { hint, cause } = details;
    return new CodecError(code, message(path), { path, ...(hint === undefined ? {} : { hint }), cause });
  }
}
