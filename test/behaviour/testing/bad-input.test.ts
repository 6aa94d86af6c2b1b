// Invalid arguments of the testing tools are rejected: a fault that never occurs would let a test pass for the wrong reason.
import { describe, expect, it } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { ConfigError } from "../../../src/core/errors.ts";
import { backendContract, ChaosBackend, ManualClock } from "../../../src/testing/index.ts";

/** As seen by an untyped caller. */
type Untyped = Record<string, (...given: unknown[]) => unknown>;

const chaos = (): ChaosBackend => new ChaosBackend(new MemoryBackend());
const untyped = (): Untyped => chaos() as unknown as Untyped;
const build = (...given: unknown[]): unknown => Reflect.construct(ChaosBackend, given);
const runner = { describe: () => {}, it: () => {} };
const offers = { shared: false, scan: true, push: false };
const contract = backendContract as unknown as (...given: unknown[]) => unknown;

const wrong: readonly (readonly [string, () => unknown, RegExp])[] = [
  ["no backend", () => build(), /^the wrapped backend must be an object, got undefined$/],
  [
    "what is no backend",
    () => build({}),
    /^the wrapped backend must have the method connect, got undefined$/,
  ],
  ["no options", () => build(new MemoryBackend(), null), /^options must be an object, got null$/],
  [
    "another option",
    () => build(new MemoryBackend(), { sed: 1 }),
    /unknown option "sed": did you mean "seed"/,
  ],
  ["a seed", () => build(new MemoryBackend(), { seed: "x" }), /^seed must be a whole number, got "x"$/],
  ["fail", () => untyped().fail?.("raed", new Error("x")), /got "raed": did you mean "read"\?$/],
  [
    "fail, inherited",
    () => untyped().fail?.("constructor", new Error("x")),
    /got "constructor": use one of all, /,
  ],
  ["an error", () => untyped().fail?.("read"), /^error must be an Error, got undefined$/],
  ["times", () => untyped().drop?.("read", -1), /^times must be .* at least 0, or Infinity, got -1$/],
  ["drop", () => untyped().drop?.("get"), /^the operation must be a known name, got "get"/],
  ["lose", () => untyped().lose?.(5), /^the operation must be a known name, got 5: use one of all, /],
  ["hang", () => untyped().hang?.("everything"), /got "everything"/],
  ["calls", () => untyped().calls?.("reads"), /got "reads": did you mean "read"\?$/],
  ["a delay", () => untyped().delay?.("5"), /^a delay must be a finite number .*, got "5"$/],
  ["an endless delay", () => chaos().delay(Number.POSITIVE_INFINITY), /^a delay must be .* got Infinity$/],
  ["a chance", () => chaos().random({ drop: 5 }), /^drop must be from 0 to 1, got 5$/],
  [
    "chances",
    () => chaos().random({ drop: 0.7, lose: 0.7 }),
    /^drop and lose together must be from 0 to 1, got 1.4$/,
  ],
  ["a kind of chance", () => untyped().random?.({ hang: 1 }), /^unknown option "hang"/],
  ["the start", () => new ManualClock(Number.NaN), /^the start must be .* got NaN$/],
  ["no subject", () => contract(undefined, runner), /^the subject must be an object, got undefined$/],
  ["no offers", () => contract({ open: () => {} }, runner), /^offers must be an object, got undefined$/],
  [
    "an offer",
    () => contract({ open: () => {}, offers: { ...offers, push: "no" } }, runner),
    /^offers.push must be true or false, got "no"$/,
  ],
  ["no runner", () => contract({ open: () => {}, offers }), /^the runner must be an object, got undefined$/],
];

describe("invalid arguments are rejected", () => {
  it.each(wrong)("%s", (_what, call, message) => {
    expect(call).toThrow(ConfigError);
    expect(call).toThrow(message);
  });

  it("time runs neither backwards nor to infinity", async () => {
    const clock = new ManualClock();
    const began = clock.now();
    for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(clock.advance(ms)).rejects.toThrow(ConfigError);
      await expect(clock.jump(ms)).rejects.toThrow(ConfigError);
    }
    expect(clock.now()).toBe(began);
  });

  it("a delay returned by a function is validated as well", async () => {
    await expect(
      chaos()
        .delay(() => -1)
        .read("key"),
    ).rejects.toThrow(ConfigError);
  });
});

it("a fault with times 0 does not occur", async () => {
  const backend = chaos().drop("read", 0).lose("read", 0);
  await expect(backend.read("key")).resolves.toBeUndefined();
});
