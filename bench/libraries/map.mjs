// A raw Map, synchronous: the cost of reading and writing without promises.
export async function open({ load }) {
  const map = new Map();
  return {
    synchronous: true,
    get: (key) => map.get(key),
    set: (key, value) => {
      map.set(key, value);
    },
    getOrSet: async (key) => {
      let value = map.get(key);
      if (value === undefined) {
        value = await load(key);
        map.set(key, value);
      }
      return value;
    },
  };
}
