// Maps what a function returns: a value, a promise or an async generator.

type Change = (value: unknown) => unknown;

const tagOf = (value: unknown): string => Object.prototype.toString.call(value);

export function isGeneratorFunction(fn: unknown): boolean {
  return tagOf(fn) === "[object AsyncGeneratorFunction]";
}

/** The same kind of result with its values mapped by `change`. */
export function mapResult(outcome: unknown, change: Change): unknown {
  if (isAsyncGenerator(outcome)) return mapGenerator(outcome, change);
  // Not everything with a `then`: the session of a query builder may have one.
  if (tagOf(outcome) === "[object Promise]") return (outcome as Promise<unknown>).then(change);
  return change(outcome);
}

function isAsyncGenerator(value: unknown): value is AsyncGenerator {
  if (typeof value !== "object" || value === null) return false;
  const { next, throw: fail, [Symbol.asyncIterator]: iterate } = value as Partial<AsyncGenerator>;
  return [next, fail, iterate].every((method) => typeof method === "function");
}

/**
 * Forwards what its consumer sends, an error thrown into it, and an early return, so that the generator's cleanup runs in
 * each case.
 */
async function* mapGenerator(source: AsyncGenerator, change: Change): AsyncGenerator {
  let step = await source.next();
  try {
    while (!step.done) {
      let sent: unknown;
      try {
        sent = yield change(step.value);
      } catch (error) {
        step = await source.throw(error);
        continue;
      }
      step = await source.next(sent);
    }
    return step.value;
  } finally {
    // The consumer returned early at the yield. For a finished generator this is a no-op.
    if (!step.done) await source.return(undefined);
  }
}
