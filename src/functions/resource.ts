// What a function hands out, at once, by a promise or by an async generator, changed on the way.

type Change = (value: unknown) => unknown;

const tagOf = (value: unknown): string => Object.prototype.toString.call(value);

export function isGeneratorFunction(fn: unknown): boolean {
  return tagOf(fn) === "[object AsyncGeneratorFunction]";
}

/** The same kind of thing, with what comes out of it changed. */
export function handedOut(outcome: unknown, change: Change): unknown {
  if (isAsyncGenerator(outcome)) return changedGenerator(outcome, change);
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
 * Passes on whatever its consumer does: what is sent in, an error that is thrown, and an early end, so that the clean-up of
 * the generator runs in each case.
 */
async function* changedGenerator(source: AsyncGenerator, change: Change): AsyncGenerator {
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
    // Its consumer left at the yield. A generator that is over does nothing here.
    if (!step.done) await source.return(undefined);
  }
}
