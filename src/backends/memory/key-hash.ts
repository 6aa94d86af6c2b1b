// 32-bit hash of a key for the eviction policy's memory. It decides nothing but what is worth keeping.

const WHOLE_LENGTH = 128;
const PART_LENGTH = WHOLE_LENGTH / 2;

function mixed(hash: number, key: string, from: number, to: number): number {
  let h = hash;
  for (let i = from; i < to; i++) h = Math.imul(h ^ key.charCodeAt(i), 0x01000193);
  return h;
}

/** Long keys are hashed by their length, head and tail, so that the cost is bounded. */
export function hashKey(key: string, seed: number): number {
  const length = key.length;
  let h = Math.imul(Math.imul(seed + 1, 0x9e3779b1) ^ length, 0x27d4eb2f);
  if (length <= WHOLE_LENGTH) h = mixed(h, key, 0, length);
  else h = mixed(mixed(h, key, 0, PART_LENGTH), key, length - PART_LENGTH, length);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
