import { describe, expect, it } from "vitest";
import { DiskBackend } from "../../src/backends/disk/backend.ts";
import { KvBackend } from "../../src/backends/kv/backend.ts";
import { MemcachedBackend } from "../../src/backends/memcached/backend.ts";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";

type Options = never;

describe.each([
  ["KvBackend", (options: unknown) => new KvBackend(options as Options), { kvUrl: "redis://localhost" }],
  [
    "MemcachedBackend",
    (options: unknown) => new MemcachedBackend(options as Options),
    { kvUrl: "memcached://localhost" },
  ],
  [
    "DiskBackend",
    (options: unknown) => new DiskBackend(options as Options),
    { directory: "/tmp/never-opened" },
  ],
  ["MemoryBackend", (options: unknown) => new MemoryBackend(options as Options), {}],
] as const)("options of %s", (name, open, valid) => {
  it("with an unknown name are an error that names the nearest known one", () => {
    const [known = "maxBytes"] = Object.keys(valid);
    const typo = `${known.slice(0, -1)}x`;
    expect(() => open({ ...valid, [typo]: 1 })).toThrow(
      expect.objectContaining({
        code: "CONFIG_UNKNOWN_FIELD",
        message: expect.stringMatching(new RegExp(`^${name} has no option "${typo}".*${known}`)),
      }),
    );
  });

  it.each([[undefined], [null], [5], [[]], ["redis://user:hunter2@host"]])(
    "must be an object, not %j",
    (options) => {
      if (name === "MemoryBackend" && options === undefined) return;
      const failure = (() => {
        try {
          return open(options);
        } catch (error) {
          return error as Error;
        }
      })();
      expect(failure).toMatchObject({
        code: "CONFIG_INVALID",
        message: expect.stringContaining(`${name} options must be an object`),
      });
      expect((failure as Error).message).not.toContain("hunter2");
    },
  );
});
