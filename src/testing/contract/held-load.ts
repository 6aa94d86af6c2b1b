// Loads that finish when a case says so.

/** A promise with its ends in hand. */
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
  // One that nobody has come to yet may fail already.
  promise.catch(() => {});
  return { promise, open, fail };
}

export class HeldLoad<T> {
  readonly #started = gate<void>();
  readonly #result = gate<T>();
  /** How often it was called. */
  runs = 0;

  readonly load = (): Promise<T> => {
    this.runs++;
    this.#started.open();
    return this.#result.promise;
  };

  /** Resolves once it was called. */
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
