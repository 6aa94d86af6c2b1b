// Two caches on the way of one request, of the application and of a route: the inner one must not wait for what the outer one
// is just filling through it.

/** What a request on its way to the handler fills. */
export interface Fill {
  readonly cache: object;
  /** Of the URL, without a variant. */
  readonly key: string;
}

const fills = new WeakMap<object, Fill[]>();

/** `message`: the request as the handler gets it. */
export function beginFill(message: object, fill: Fill): void {
  const under = fills.get(message);
  if (under === undefined) fills.set(message, [fill]);
  else under.push(fill);
}

export function isFilling(message: object, cache: object, key: string): boolean {
  return fills.get(message)?.some((fill) => fill.cache === cache && fill.key === key) ?? false;
}
