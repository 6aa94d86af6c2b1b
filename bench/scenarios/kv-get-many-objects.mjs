// getMany of 100 present keys that hold objects, one caller.
import { getManyScenario } from "../kv/many-keys.mjs";

export const scenario = getManyScenario({
  title: "getMany of 100 keys, 1 in flight, objects",
  note: "The baseline is mget, whose answers are parsed as JSON. Only libraries that read several keys at once.",
  baseline: "kv/ioredis-json",
  isText: false,
});
