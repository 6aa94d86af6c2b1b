// How the command line reports every failure: exit code, message, and what to do next.
import { describe, expect, test } from "vitest";
import { CommandError } from "../../src/cli/exit-code.ts";
import { failureOf } from "../../src/cli/failure.ts";
import {
  CircuitOpenError,
  CodecError,
  ConfigError,
  ConnectionError,
  InvalidKeyError,
  MissingPeerError,
  OperationTimeoutError,
  UnsupportedError,
} from "../../src/core/errors.ts";

describe("a failure", () => {
  test.each([
    [new ConfigError("CONFIG_INVALID", "x"), 2],
    [new InvalidKeyError("x"), 2],
    [new CommandError("x", "Do this instead."), 2],
    [new ConnectionError("x"), 3],
    [new OperationTimeoutError("x"), 3],
    [new CircuitOpenError("x"), 3],
    [new UnsupportedError("x"), 4],
    [new MissingPeerError("lmdb", "the store on disk"), 4],
    [new CodecError("FRAME_INVALID", "x"), 1],
    [Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" }), 1],
    [new TypeError("a bug"), 1],
    ["thrown text", 1],
  ])("of %s has its exit code and a hint", (error, exitCode) => {
    const failure = failureOf(error, false);
    expect(failure.exitCode).toBe(exitCode);
    expect(failure.hint.length).toBeGreaterThan(10);
    expect(failure.message).not.toBe("");
  });

  test("never contains credentials or control characters", () => {
    const { message } = failureOf(new ConnectionError("redis://u:s3cret@h:1 \u001b[2J"), false);
    expect(message).toBe("redis://***@h:1 \\x1b[2J");
  });

  test("to reach the default address mentions that no address was given", () => {
    expect(failureOf(new ConnectionError("x"), true).hint).toContain("No address was given");
    expect(failureOf(new ConnectionError("x"), false).hint).not.toContain("No address was given");
  });

  test("keeps an error's own hint instead of the table's", () => {
    expect(failureOf(new ConnectionError("x", { hint: "Unlock the door." }), false).hint).toBe(
      "Unlock the door.",
    );
  });

  // doctor itself stops at such an error, and its own report of a connection would send its reader to itself.
  test.each([new ConfigError("CONFIG_INVALID", "--kv-url: x"), new ConnectionError("x")])(
    "of %s does not only send the reader to `xcache doctor`",
    (error) => {
      expect(failureOf(error, false).hint).not.toMatch(/`xcache doctor`/);
    },
  );

  test("by timeout names the flag that raises the limit", () => {
    expect(failureOf(new OperationTimeoutError("x"), false).hint).toContain("--timeout");
  });
});
