// A program that awaits a getOrSet with a timeout stays alive until the timeout, even if nothing else keeps it.
import { expect, test } from "vitest";
import { OwnProcess } from "../../support/own-process.ts";

test.each([
  ["hardTimeout", { hardTimeout: 0.2 }, "LOAD_TIMEOUT"],
  ["softTimeout", { softTimeout: 0.1, hardTimeout: 0.3, staleIfError: 60 }, "LOAD_TIMEOUT"],
])("a load that never settles: the program gets its %s", async (_name, options, code) => {
  await using own = new OwnProcess(
    `
    import { XCache } from "./index.js";
    const cache = new XCache({ kvUrl: "memory://", enableMetrics: false });
    try {
      await cache.getOrSet("k", () => new Promise(() => {}), settings.options);
    } catch (error) {
      say("failed", { code: error.code });
    }
  `,
    { settings: { options } },
  );
  expect(await own.heard("failed")).toMatchObject({ code });
  expect(await own.ended(), own.errors).toEqual({ code: 0, signal: null });
});
