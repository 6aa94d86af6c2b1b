// getMany of 100 present keys that hold text, one caller.
import { getManyScenario } from "../kv/many-keys.mjs";
import { atLeast } from "../kv/single-key.mjs";

export const scenario = getManyScenario({
  title: "getMany of 100 keys, 1 in flight, texts",
  note: "Values are texts of 200 bytes, which the baseline hands out as they arrived. Only libraries that read several keys at once.",
  baseline: "kv/ioredis",
  isText: true,
  target: atLeast(1),
});
