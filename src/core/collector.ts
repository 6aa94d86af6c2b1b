// The contract of a metrics sink: four methods, sync or async. A slow or failing sink never affects an operation.

export type MetricTags = Readonly<Record<string, string>>;

export interface Collector {
  /** Adds `value` (default 1) to a counter. */
  increment(metric: string, value?: number, tags?: MetricTags): void | Promise<void>;
  /** Sets a gauge. */
  gauge(metric: string, value: number, tags?: MetricTags): void | Promise<void>;
  /**
   * Adds one observation to a distribution. `sampleRate` is set where the observation represents unmeasured ones too:
   * 0.25 means it counts for four.
   */
  histogram(metric: string, value: number, tags?: MetricTags, sampleRate?: number): void | Promise<void>;
  /** Adds one duration, in seconds. */
  timing(metric: string, value: number, tags?: MetricTags): void | Promise<void>;
}

/** Where a collector sends to: another one of the same cache that sends there too doubles every count. */
export const sendsTo = Symbol("sendsTo");

export interface SendingCollector extends Collector {
  /** The same value for the same place; `name` is for people. */
  readonly [sendsTo]: { readonly place: unknown; readonly name: string };
}

export function isSending(collector: Collector): collector is SendingCollector {
  return sendsTo in collector;
}
