// One process of a stampede: all its callers ask for one key at once, and its load ends when the test says so.
import type { CacheConfig } from "../../../src/config/types.ts";
import { OwnProcess } from "../own-process.ts";

const PROGRAM = `
import { XCache } from "./index.js";
import { cacheWithClock, ManualClock } from "./testing/index.js";
const { config, key, callers, isClockStill } = settings;
const cache = isClockStill ? cacheWithClock(config, new ManualClock()) : new XCache(config);
// Stays until the test ends, as a server with its socket does: a clock that stands still keeps no process alive.
process.once("disconnect", () => process.exit());

await cache.connect();
say("ready");
await nextMessage();

let loads = 0;
const finish = nextMessage();
const load = () => {
  loads++;
  say("loading");
  return finish;
};
const answers = Promise.all(Array.from({ length: callers }, () => cache.getOrSet(key, load)));
say("asked");
say("answered", { values: await answers, loads });
`;

export interface StampedeSettings {
  readonly config: CacheConfig;
  readonly key: string;
  /** How many ask for the key at once. */
  readonly callers: number;
  /** Whether no time passes for its cache. Default: false. */
  readonly isClockStill?: boolean;
}

/**
 * Says "ready", after the first message "asked", then "loading" if it is the one that loads. The next message is what its load
 * returns.
 */
export class StampedeProcess extends OwnProcess {
  constructor(settings: StampedeSettings) {
    super(PROGRAM, { settings });
  }

  /** Resolves when all its callers have their values. */
  async answered(): Promise<{ readonly loads: number; readonly values: readonly unknown[] }> {
    const { loads, values } = await this.heard("answered");
    return { loads: loads as number, values: values as readonly unknown[] };
  }
}
