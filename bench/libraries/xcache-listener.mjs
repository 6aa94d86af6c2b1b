// xcache with a listener for every hit.
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const driver = await openXCache(options);
  let heard = 0;
  driver.cache.on("hit", () => {
    heard++;
  });
  return { ...driver, heard: () => heard };
}
