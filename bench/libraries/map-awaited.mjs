// A raw Map whose answers are awaited: the most that any library with promises can reach.
import { open as openMap } from "./map.mjs";

export async function open(options) {
  return { ...(await openMap(options)), synchronous: false };
}
