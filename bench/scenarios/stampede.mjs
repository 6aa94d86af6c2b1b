// Many callers, one cold key: how often is it loaded, and how long do they wait?
import { setTimeout as after } from "node:timers/promises";
import { median } from "../timing.mjs";

const CALLERS = 1_000;
const LOAD_MS = 50;
const REPEATS = 11;
/** The key is cold, the code is not. */
const WARM_UPS = 20;

export const scenario = {
  title: "1,000 concurrent getOrSet on one cold key, 50 ms load",
  note: "The raw Map has no single flight. The load alone takes about 50.2 ms.",
  unit: "ms",
  extra: { loads: "loads" },
  libraries: [
    "xcache",
    "map",
    "lru-cache",
    "layered-loader",
    "bentocache",
    "cacheable",
    "cache-manager",
    "async-cache-dedupe",
  ],
  target: { text: "1 load, <= 55 ms", reached: ({ figure, loads }) => figure <= 55 && loads === 1 },

  async measure(open) {
    let loads = 0;
    let loadMs = 1;
    const load = async (key) => {
      loads++;
      await after(loadMs);
      return { key };
    };
    const driver = await open({ capacity: 1_000, load });
    const times = [];
    for (let repeat = -WARM_UPS; repeat < REPEATS; repeat++) {
      const key = `cold:${repeat}`;
      if (repeat === 0) {
        loads = 0;
        loadMs = LOAD_MS;
      }
      const started = performance.now();
      const values = await Promise.all(Array.from({ length: CALLERS }, () => driver.getOrSet(key)));
      if (repeat >= 0) times.push(performance.now() - started);
      if (values.some((value) => value.key !== key)) throw new Error("a caller got another key's value");
    }
    return { figure: median(times), loads: loads / REPEATS };
  },
};
