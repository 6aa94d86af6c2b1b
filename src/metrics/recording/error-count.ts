// Counts errors by operation, type and class, never by message.
import type { MetricTags } from "../../core/collector.ts";
import { XCacheError } from "../../core/errors.ts";

export interface ErrorCount {
  readonly tags: MetricTags;
  count: number;
}

/** Class names of foreign errors; anything that does not look like an identifier is not reported. */
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

const OTHER_CLASS = "Error";

/** Distinct combinations; beyond that the class is not distinguished. */
const MAX_KINDS = 1_000;

function classOf(error: Error): string {
  try {
    const name: unknown = error.constructor?.name;
    return typeof name === "string" && CLASS_NAME.test(name) ? name : OTHER_CLASS;
  } catch {
    return OTHER_CLASS;
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
    else if (this.#counts.size < MAX_KINDS || tags.error_class === OTHER_CLASS)
      this.#counts.set(id, { tags, count });
    else this.add({ ...tags, error_class: OTHER_CLASS }, count);
  }

  [Symbol.iterator](): IterableIterator<readonly [id: string, counted: ErrorCount]> {
    return this.#counts.entries();
  }
}
