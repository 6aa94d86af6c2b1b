// How errors are counted: by operation, kind and class, never by what their messages say.
import type { MetricTags } from "../../core/collector.ts";
import { XCacheError } from "../../core/errors.ts";

export interface ErrorCount {
  readonly tags: MetricTags;
  count: number;
}

/** Class names of others' errors come from code; one that does not look like a name is not told. */
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

const ANY_CLASS = "Error";

/** Kinds of errors told apart; of further ones the class is not told. */
const MOST_KINDS = 1_000;

function classOf(error: Error): string {
  try {
    const name: unknown = error.constructor?.name;
    return typeof name === "string" && CLASS_NAME.test(name) ? name : ANY_CLASS;
  } catch {
    return ANY_CLASS;
  }
}

export class ErrorCounts {
  readonly #counts = new Map<string, ErrorCount>();

  count(operation: string, error: Error): void {
    const type = error instanceof XCacheError ? error.errorType : "unknown";
    this.add({ operation, error_type: type, error_class: classOf(error) }, 1);
  }

  add(tags: MetricTags, count: number): void {
    const id = JSON.stringify(tags);
    const known = this.#counts.get(id);
    if (known !== undefined) known.count += count;
    else if (this.#counts.size < MOST_KINDS || tags.error_class === ANY_CLASS)
      this.#counts.set(id, { tags, count });
    else this.add({ ...tags, error_class: ANY_CLASS }, count);
  }

  [Symbol.iterator](): IterableIterator<readonly [id: string, counted: ErrorCount]> {
    return this.#counts.entries();
  }
}
