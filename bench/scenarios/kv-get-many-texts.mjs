// getMany of 100 present keys that hold text, one caller: no library decodes anything but text.
import { getManyScenario } from "../kv/many-keys.mjs";
import { atLeast } from "../kv/single-key.mjs";

export const scenario = getManyScenario({
  title: "getMany of 100 keys, 1 in flight, texts",
  note: "Values are texts of 200 bytes for everybody: the same goes in and comes out. The baseline is mget.",
  baseline: "kv/ioredis",
  isText: true,
  target: atLeast(1),
});
