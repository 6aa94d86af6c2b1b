// Callbacks of the options, whose types a function that is async may slip past.

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** What the callback said. Throws TypeError for a promise: nobody waits for it, and it would count for a yes. */
export function requireAnswer<T>(name: string, answer: T): T {
  if (!isPromise(answer)) return answer;
  answer.then(undefined, () => {});
  throw new TypeError(`${name} must return true or false at once, got a promise: it may not be async`);
}
