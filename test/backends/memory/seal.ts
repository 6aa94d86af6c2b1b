// Seals for the slot tests: one that always lives and ones that can be killed or counted.
import type { SlotSeal } from "../../../src/backends/memory/slots.ts";

export const LIVE: SlotSeal = { isLive: () => true };

/** Dies when told to, and counts how often it is asked. */
export class MortalSeal implements SlotSeal {
  live = true;
  asked = 0;

  isLive(): boolean {
    this.asked++;
    return this.live;
  }
}
