// get of present keys, 256 concurrent callers.
import { getScenario } from "../kv/single-key.mjs";

export const scenario = getScenario({ inFlight: 256, oneIn: 8, least: 4.8 });
