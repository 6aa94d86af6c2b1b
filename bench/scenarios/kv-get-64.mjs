// get of present keys, 64 concurrent callers.
import { getScenario } from "../kv/single-key.mjs";

export const scenario = getScenario({ inFlight: 64, oneIn: 8, least: 4.3 });
