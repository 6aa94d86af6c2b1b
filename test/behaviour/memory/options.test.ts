import { describe, expect, test } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConfigError } from "../../../src/core/errors.ts";

function refusal(options: unknown): string {
  try {
    new MemoryBackend(options as never);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  throw new Error("nothing was refused");
}

describe("the options of a memory backend", () => {
  test.each([
    [null, "MemoryBackend options must be an object, got null"],
    [1000, "MemoryBackend options must be an object, got 1000"],
    [[], "MemoryBackend options must be an object, got an array of 0"],
    [new Map(), "MemoryBackend options must be an object, got an object (Map)"],
    [{ maxEntires: 5 }, 'MemoryBackend has no option "maxEntires"; did you mean "maxEntries"?'],
    [{ maxBytes: 0 }, "maxBytes must be a whole number of bytes of at least 1, got 0"],
    [{ maxBytes: "5" }, 'maxBytes must be a whole number of bytes of at least 1, got "5"'],
    [{ values: "own" }, 'values must be "copy", "shared" or "frozen", got "own"'],
  ])("%j is rejected with what was expected and what arrived", (options, message) => {
    expect(refusal(options)).toBe(message);
  });
});
