// get of present keys, 256 callers at once.
import { getScenario } from "../kv/single-key.mjs";

export const scenario = getScenario({ inFlight: 256, oneIn: 8, least: 4.8 });
