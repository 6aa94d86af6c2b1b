// The contract of a metrics sink: four methods, sync or async. Whatever it does never slows or breaks an operation.

export type MetricTags = Readonly<Record<string, string>>;

export interface Collector {
  /** Adds `value` (default 1) to a counter. */
  increment(metric: string, value?: number, tags?: MetricTags): void | Promise<void>;
  /** Sets a gauge. */
  gauge(metric: string, value: number, tags?: MetricTags): void | Promise<void>;
  /**
   * Adds one observation to a distribution. `sampleRate` is given where it stands for others that were not measured:
   * 0.25 means for four.
   */
  histogram(metric: string, value: number, tags?: MetricTags, sampleRate?: number): void | Promise<void>;
  /** Adds one duration, in seconds. */
  timing(metric: string, value: number, tags?: MetricTags): void | Promise<void>;
}
