// An async function over a Map in front of a bare socket: a near tier without bound, expiry or coherence.
import { open as openMinimal } from "./minimal.mjs";

export async function open(options) {
  const store = await openMinimal(options);
  const map = new Map();
  return {
    set: store.set,
    getOrSet: async (key) => {
      let value = map.get(key);
      if (value === undefined) {
        value = await store.getOrSet(key);
        map.set(key, value);
      }
      return value;
    },
  };
}
