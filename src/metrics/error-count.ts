// How errors are counted: by operation, kind and class, never by what their messages say.
import type { MetricTags } from "../core/collector.ts";
import { XCacheError } from "../core/errors.ts";

export interface ErrorCount {
  readonly tags: MetricTags;
  count: number;
}

/** Class names of others' errors come from code; one that does not look like a name is not told. */
const CLASS_NAME = /^[A-Za-z_$][\w$]{0,63}$/;

function classOf(error: Error): string {
  const name: unknown = error.constructor?.name;
  return typeof name === "string" && CLASS_NAME.test(name) ? name : "Error";
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
    if (known === undefined) this.#counts.set(id, { tags, count });
    else known.count += count;
  }

  [Symbol.iterator](): IterableIterator<readonly [id: string, counted: ErrorCount]> {
    return this.#counts.entries();
  }
}
