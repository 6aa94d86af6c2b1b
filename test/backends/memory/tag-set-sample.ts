// Seals for the table tests: one that always lives and ones that can be killed or counted.
import type { EntryTags } from "../../../src/backends/memory/table.ts";

export const LIVE: EntryTags = { isLive: () => true };

/** Dies on demand, and counts how often it is checked. */
export class MortalTagSet implements EntryTags {
  live = true;
  asked = 0;

  isLive(): boolean {
    this.asked++;
    return this.live;
  }
}
