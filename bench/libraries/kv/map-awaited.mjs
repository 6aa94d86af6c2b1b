// A raw Map whose answers are awaited: the upper bound for a tier in front of a store.
export async function open() {
  const map = new Map();
  return {
    set: (key, value) => {
      map.set(key, value);
    },
    getOrSet: (key) => map.get(key),
  };
}
