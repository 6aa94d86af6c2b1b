// Loads that a case finishes explicitly.

/** A promise that its owner settles. */
export interface Gate<T> {
  readonly promise: Promise<T>;
  open(value: T): void;
  fail(error: Error): void;
}

export function gate<T>(): Gate<T> {
  let open: (value: T) => void = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  // It may fail before anything awaits it.
  promise.catch(() => {});
  return { promise, open, fail };
}

export class HeldLoad<T> {
  readonly #started = gate<void>();
  readonly #result = gate<T>();
  /** Number of calls. */
  runs = 0;

  readonly load = (): Promise<T> => {
    this.runs++;
    this.#started.open();
    return this.#result.promise;
  };

  /** Resolves on the first call. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  finish(value: T): void {
    this.#result.open(value);
  }

  fail(error: Error): void {
    this.#result.fail(error);
  }
}
