// A raw Map whose answers are awaited: the upper bound for any library with promises.
import { open as openMap } from "./map.mjs";

export async function open(options) {
  return { ...(await openMap(options)), synchronous: false };
}
