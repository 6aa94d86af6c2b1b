// Nested caches: when the application and a route both use a cache, the inner one must not wait for the key that the outer one
// is filling through it.

/** The key that a request on its way to the handler is filling. */
export interface Fill {
  readonly cache: object;
  /** The key of the URL, without a variant. */
  readonly key: string;
}

const fills = new WeakMap<object, Fill[]>();

/** `message`: the request object passed to the handler. */
export function beginFill(message: object, fill: Fill): void {
  const outer = fills.get(message);
  if (outer === undefined) fills.set(message, [fill]);
  else outer.push(fill);
}

export function isFilling(message: object, cache: object, key: string): boolean {
  return fills.get(message)?.some((fill) => fill.cache === cache && fill.key === key) ?? false;
}
