// get of a present key, one caller.
import { getScenario } from "../kv/single-key.mjs";

export const scenario = getScenario({
  inFlight: 1,
  oneIn: 32,
  least: 0.95,
  note: "The baseline hands out the text as it arrived; every library decodes it.",
});
