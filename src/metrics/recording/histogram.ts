// Latency histogram with fixed buckets: adding is one array increment, quantiles are interpolated.

/** Upper bounds in seconds, 0.05 ms to 10 s. */
export const LATENCY_BUCKETS: readonly number[] = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

export class Histogram {
  /** One more than the bounds: the last counts everything above them. */
  readonly counts = new Float64Array(LATENCY_BUCKETS.length + 1);
  sum = 0;
  count = 0;

  /** `weight`: the number of observations this sample represents. */
  add(seconds: number, weight = 1): void {
    let at = 0;
    while (at < LATENCY_BUCKETS.length && seconds > (LATENCY_BUCKETS[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + weight;
    this.sum += seconds * weight;
    this.count += weight;
  }

  merge(other: Histogram, factor: 1 | -1 = 1): void {
    for (let at = 0; at < this.counts.length; at++) {
      this.counts[at] = (this.counts[at] as number) + factor * (other.counts[at] as number);
    }
    this.sum += factor * other.sum;
    this.count += factor * other.count;
  }

  mean(): number {
    return this.count === 0 ? 0 : this.sum / this.count;
  }

  /** Interpolated within its bucket; 0 without samples. */
  quantile(fraction: number): number {
    let left = fraction * this.count;
    for (let at = 0; at < this.counts.length; at++) {
      const inBucket = this.counts[at] as number;
      if (inBucket > 0 && left <= inBucket) {
        const low = at === 0 ? 0 : (LATENCY_BUCKETS[at - 1] as number);
        const high = LATENCY_BUCKETS[at] ?? low;
        return low + (high - low) * (left / inBucket);
      }
      left -= inBucket;
    }
    return 0;
  }
}
