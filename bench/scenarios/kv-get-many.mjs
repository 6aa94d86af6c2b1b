// getMany of 100 present keys, one caller.
import { getManyScenario } from "../kv/many-keys.mjs";
import { atLeast } from "../kv/single-key.mjs";

export const scenario = getManyScenario({
  title: "getMany of 100 keys, 1 in flight",
  note: "The baseline is mget, which hands out the texts as they arrived. Only libraries that read several keys at once.",
  baseline: "kv/ioredis",
  isText: false,
  target: atLeast(1),
});
