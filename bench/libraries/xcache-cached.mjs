// xcache on its memory store, read through a function wrapped by `cached`.
import { cached } from "../../dist/index.js";
import { openXCache } from "./xcache.mjs";

export async function open(options) {
  const driver = await openXCache(options);
  const find = cached(async (id) => options.load(id), { cache: driver.cache, name: "user" });
  return { ...driver, getById: (id) => find(id) };
}
