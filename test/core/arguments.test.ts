import { describe, expect, it } from "vitest";
import { requireOptions, requireShareable } from "../../src/core/arguments.ts";
import { systemClock } from "../../src/core/clock.ts";
import { CodecError, ConfigError } from "../../src/core/errors.ts";
import { cacheWithClock } from "../../src/testing/manual-clock.ts";

/** Built from parts, so that no linter flags these objects as a mistake. */
const THEN: string = "then";

/** Runs with an enumerable property on Object.prototype, as careless libraries leave behind. */
function polluted(name: string, run: () => void): void {
  const property = { value: 1, enumerable: true, configurable: true, writable: true };
  Object.defineProperty(Object.prototype, name, property);
  try {
    run();
  } finally {
    Reflect.deleteProperty(Object.prototype, name);
  }
}

describe("options", () => {
  it("are not rejected for what a library has added to Object.prototype", () => {
    polluted("extra", () => {
      expect(() => requireOptions({}, ["ttl"])).not.toThrow();
      expect(() => requireOptions({ ttl: 1 }, ["ttl"])).not.toThrow();
      expect(() => requireOptions(Object.create({ ttl: 1 }), ["ttl"])).not.toThrow();
      expect(() => requireOptions({ tll: 1 }, ["ttl"])).toThrow('unknown option "tll"');
      expect(() => requireOptions(Object.create({ tll: 1 }), ["ttl"])).toThrow('unknown option "tll"');
      expect(() => requireOptions({ extra: 1 }, ["ttl"])).toThrow('unknown option "extra"');
    });
  });

  it("with an unknown name are rejected with a ConfigError", () => {
    expect(() => requireOptions({ nonsense: 1 }, ["ttl"])).toThrow(ConfigError);
  });
});

describe("a value to be shared", () => {
  it("is rejected with a CodecError that holds the cause when its `then` cannot be read", () => {
    const cause = new Error("mine");
    const hostile = Object.defineProperty({}, THEN, {
      get() {
        throw cause;
      },
    });
    let thrown: unknown;
    try {
      requireShareable(hostile);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(CodecError);
    expect(thrown).toMatchObject({ code: "VALUE_UNSUPPORTED", path: "$.then", cause });
  });

  it("is rejected with a `then` method, and accepted with any other `then`", () => {
    expect(() => requireShareable(Promise.resolve(1))).toThrow(CodecError);
    for (const value of [{ [THEN]: 1 }, [], null, 5, "text"])
      expect(() => requireShareable(value)).not.toThrow();
  });
});

describe("the clock of a cache under test", () => {
  it.each([undefined, null, 5, {}])("%o is rejected with a description of a clock", (clock) => {
    expect(() => cacheWithClock({ kvUrl: "memory://" }, clock as never)).toThrow(ConfigError);
    expect(() => cacheWithClock({ kvUrl: "memory://" }, clock as never)).toThrow(
      "clock must be a Clock, got",
    );
  });

  it("must be complete, or the message names what is missing", () => {
    const { token, ...others } = systemClock;
    expect(() => cacheWithClock({ kvUrl: "memory://" }, others as never)).toThrow("got one without token");
    expect(() => cacheWithClock({ kvUrl: "memory://" }, { ...others, token })).not.toThrow();
  });
});
