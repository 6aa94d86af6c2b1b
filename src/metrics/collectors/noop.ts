// The collector of a cache whose figures nobody wants: it records nothing.
import type { Collector } from "../../core/collector.ts";

export class NoOpCollector implements Collector {
  increment(): void {}
  gauge(): void {}
  histogram(): void {}
  timing(): void {}
}
