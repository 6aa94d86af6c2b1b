// get of present keys from disk, 64 concurrent callers, next to Redis over loopback.
import { getScenario } from "../kv/single-key.mjs";

export const scenario = {
  ...getScenario({ inFlight: 64, oneIn: 8, least: 1.5 }),
  libraries: ["disk/xcache"],
};
