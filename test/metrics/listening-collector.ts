// A custom collector that records its calls.
import type { Collector, MetricTags } from "../../src/core/collector.ts";

export type Call = readonly [method: keyof Collector, metric: string, value: number, tags?: MetricTags];

export class ListeningCollector implements Collector {
  readonly calls: Call[] = [];
  readonly rates: (number | undefined)[] = [];

  increment(metric: string, value = 1, tags?: MetricTags): void {
    this.#note("increment", metric, value, tags);
  }
  gauge(metric: string, value: number, tags?: MetricTags): void {
    this.#note("gauge", metric, value, tags);
  }
  histogram(metric: string, value: number, tags?: MetricTags, sampleRate?: number): void {
    this.#note("histogram", metric, value, tags);
    this.rates.push(sampleRate);
  }
  timing(metric: string, value: number, tags?: MetricTags): void {
    this.#note("timing", metric, value, tags);
  }

  of(metric: string): Call[] {
    return this.calls.filter(([, name]) => name === metric);
  }

  /** The sum of a counter's increments. */
  total(metric: string, result?: string): number {
    return this.of(metric)
      .filter(([, , , tags]) => result === undefined || tags?.result === result)
      .reduce((sum, [, , value]) => sum + value, 0);
  }

  #note(method: keyof Collector, metric: string, value: number, tags: MetricTags | undefined): void {
    this.calls.push(tags === undefined ? [method, metric, value] : [method, metric, value, tags]);
  }
}
