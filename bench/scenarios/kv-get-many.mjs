// getMany of 100 present keys, one caller.
import { getManyScenario } from "../kv/many-keys.mjs";
import { atLeast } from "../kv/single-key.mjs";

export const scenario = getManyScenario({
  title: "getMany of 100 keys, 1 in flight",
  note:
    "Everybody hands out objects but the baseline, an mget that leaves the texts as they arrived; JSON.parse alone would take it half its time again. " +
    "Only libraries that read several keys at once.",
  baseline: "kv/ioredis",
  isText: false,
  target: atLeast(1),
});
