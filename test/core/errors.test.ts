import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { ERROR_CODES, type ErrorCode } from "../../src/core/error-codes.ts";
import {
  AlertDeliveryError,
  BackendError,
  CircuitOpenError,
  CodecError,
  ConfigError,
  ConnectionError,
  describeArrival,
  InvalidKeyError,
  MissingPeerError,
  OperationTimeoutError,
  UnsupportedError,
  XCacheError,
} from "../../src/core/errors.ts";
import { OLDEST_SUPPORTED } from "../../src/core/peer-versions.ts";
import { EmbeddingError } from "../../src/vector/embedding.ts";

const cause = new Error("underneath");
const details = { operation: "get", hint: "Do this.", cause };

/** One error of each code, with every detail set. */
const MADE: Readonly<Record<ErrorCode, XCacheError>> = {
  CONFIG_INVALID: new ConfigError("CONFIG_INVALID", "said", details),
  CONFIG_UNKNOWN_FIELD: new ConfigError("CONFIG_UNKNOWN_FIELD", "said", details),
  CONFIG_UNREADABLE: new ConfigError("CONFIG_UNREADABLE", "said", details),
  CODE_MISSING: new ConfigError("CODE_MISSING", "said", details),
  FEATURE_DISABLED: new ConfigError("FEATURE_DISABLED", "said", details),
  ARGUMENT_INVALID: new ConfigError("ARGUMENT_INVALID", "said", details),
  NO_DEFAULT_CACHE: new ConfigError("NO_DEFAULT_CACHE", "said", details),
  NAME_REQUIRED: new ConfigError("NAME_REQUIRED", "said", details),
  NAME_TAKEN: new ConfigError("NAME_TAKEN", "said", details),
  MISSING_PEER: new MissingPeerError("lmdb", "The disk store", details),
  PEER_VERSION: new MissingPeerError("lmdb", "The disk store", {
    ...details,
    found: "2.9.1",
    oldest: "3.0.0",
  }),
  KEY_INVALID: new InvalidKeyError("said", details),
  VALUE_UNSUPPORTED: new CodecError("VALUE_UNSUPPORTED", "said", details),
  VALUE_TOO_LARGE: new CodecError("VALUE_TOO_LARGE", "said", details),
  FRAME_INVALID: new CodecError("FRAME_INVALID", "said", details),
  FRAME_VERSION: new CodecError("FRAME_VERSION", "said", details),
  ENTRY_UNREADABLE: new CodecError("ENTRY_UNREADABLE", "said", details),
  CONNECTION_FAILED: new ConnectionError("said", details),
  PROTOCOL_VIOLATED: new ConnectionError("said", { ...details, code: "PROTOCOL_VIOLATED" }),
  DISCONNECTED: new ConnectionError("said", { ...details, code: "DISCONNECTED" }),
  STORE_FAILED: new BackendError("STORE_FAILED", "said", details),
  OPERATION_TIMEOUT: new OperationTimeoutError("said", details),
  LOAD_TIMEOUT: new OperationTimeoutError("said", { ...details, code: "LOAD_TIMEOUT" }),
  CIRCUIT_OPEN: new CircuitOpenError("said", details),
  UNSUPPORTED: new UnsupportedError("said", details),
  EMBEDDING_FAILED: new EmbeddingError("failed", "said", details),
  EMBEDDING_INVALID: new EmbeddingError("zero", "said", details),
  ALERT_DELIVERY: new AlertDeliveryError("said", details),
};

const codes = Object.keys(ERROR_CODES) as ErrorCode[];

describe("docs/reference/errors.md", () => {
  const page = readFileSync(new URL("../../docs/reference/errors.md", import.meta.url), "utf8");
  const rows = page.split("\n").filter((line) => /^\| `[A-Z_]+` \|/.test(line));

  it("has exactly one line per code, with the contents of the table", () => {
    expect(rows).toEqual(
      codes.map((code) => {
        const { errorClass, retryable, summary, hint } = ERROR_CODES[code];
        return `| \`${code}\` | ${errorClass} | ${retryable ? "yes" : "no"} | ${summary} | ${hint} |`;
      }),
    );
  });

  it("names every class of the table", () => {
    const tree = /```\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    const named = tree.match(/\w+Error\b/g) ?? [];
    expect(new Set(named)).toEqual(
      new Set(["XCacheError", ...codes.map((code) => ERROR_CODES[code].errorClass)]),
    );
  });
});

describe("the table of codes", () => {
  it.each(codes)("%s has a sentence for what happened and one for what to do", (code) => {
    const { summary, hint } = ERROR_CODES[code];
    expect(summary).toMatch(/^[A-Z].*\.$/);
    expect(hint).toMatch(/^[A-Z].*\.$/);
    expect(`${summary}${hint}`).not.toMatch(/[|\n]/);
  });
});

describe.each(codes)("an error with the code %s", (code) => {
  const error = MADE[code];
  const facts = ERROR_CODES[code];

  it("is of the class that the table names", () => {
    expect(error.name).toBe(facts.errorClass);
    expect(error.constructor.name).toBe(facts.errorClass);
    expect(error.code).toBe(code);
  });

  it("carries the table's fields and the details given", () => {
    expect(error.retryable).toBe(facts.retryable);
    expect(error.errorType).toBe(facts.errorType);
    expect(error.operation).toBe("get");
    expect(error.hint).toBe("Do this.");
    expect(error.cause).toBe(cause);
    expect(error.message).toBe(error instanceof MissingPeerError ? MADE[code].message : "said");
  });

  it("is an XCacheError and an Error, with a stack", () => {
    expect(error).toBeInstanceOf(XCacheError);
    expect(error).toBeInstanceOf(Error);
    expect(error.stack).toContain(`${facts.errorClass}: `);
  });
});

describe("details left out", () => {
  it("the hint defaults to the table's, and there is no cause or operation", () => {
    const error = new ConfigError("CONFIG_INVALID", "said");
    expect(error.hint).toBe(ERROR_CODES.CONFIG_INVALID.hint);
    expect(error.operation).toBeUndefined();
    expect("cause" in error).toBe(false);
  });

  it("the code defaults to the usual one of its class", () => {
    expect(new ConnectionError("said").code).toBe("CONNECTION_FAILED");
    expect(new OperationTimeoutError("said").code).toBe("OPERATION_TIMEOUT");
  });
});

describe("the family", () => {
  it.each([ConnectionError, OperationTimeoutError, CircuitOpenError, UnsupportedError])(
    "%o is a BackendError, which is an XCacheError",
    (Child) => {
      const error = new Child("said");
      expect(error).toBeInstanceOf(Child);
      expect(error).toBeInstanceOf(BackendError);
      expect(error).toBeInstanceOf(XCacheError);
    },
  );

  it("a configuration, key or codec error is not a BackendError", () => {
    const others = codes.filter((code) => !(MADE[code] instanceof BackendError));
    expect(new Set(others.map((code) => ERROR_CODES[code].errorClass))).toEqual(
      new Set([
        "ConfigError",
        "MissingPeerError",
        "InvalidKeyError",
        "CodecError",
        "EmbeddingError",
        "AlertDeliveryError",
      ]),
    );
  });

  it("a missing package's error contains the command that installs it", () => {
    const error = new MissingPeerError("lmdb", "The disk store");
    expect(error.packageName).toBe("lmdb");
    const command = `npm install "lmdb@>=${OLDEST_SUPPORTED.lmdb}"`;
    expect(error.installCommand).toBe(command);
    expect(error.message).toBe(
      `The disk store needs the package "lmdb", which is not installed. Run: ${command}`,
    );
    expect(error.hint).toBe(`Run: ${command}`);
    const other = new MissingPeerError("lmdb", "The disk store", { installCommand: "pnpm add lmdb" });
    expect(other.message).toContain("Run: pnpm add lmdb");
    expect(other.installCommand).toBe("pnpm add lmdb");
  });

  it("a codec error contains the path of the offending part", () => {
    expect(new CodecError("VALUE_UNSUPPORTED", "said", { path: "$.a[3]" }).path).toBe("$.a[3]");
    expect(new CodecError("FRAME_INVALID", "said").path).toBeUndefined();
  });
});

describe("types", () => {
  it("a class accepts and carries only its own codes", () => {
    // @ts-expect-error a ConfigError cannot be a timeout
    new ConfigError("OPERATION_TIMEOUT", "said");
    // @ts-expect-error a CodecError cannot be about keys
    new CodecError("KEY_INVALID", "said");
    // @ts-expect-error a ConnectionError cannot be a timeout
    new ConnectionError("said", { code: "LOAD_TIMEOUT" });
    expectTypeOf<CodecError["code"]>().toEqualTypeOf<
      "VALUE_UNSUPPORTED" | "VALUE_TOO_LARGE" | "FRAME_INVALID" | "FRAME_VERSION" | "ENTRY_UNREADABLE"
    >();
    expectTypeOf<XCacheError["code"]>().toEqualTypeOf<ErrorCode>();
  });
});

describe("describeArrival", () => {
  it.each([
    [null, "null"],
    [undefined, "undefined"],
    [5, "5"],
    [-0, "0"],
    [Number.NaN, "NaN"],
    [true, "true"],
    [5n, "5n"],
    ['a\n"b', '"a\\n\\"b"'],
    ["x".repeat(40), `"${"x".repeat(40)}"`],
    ["x".repeat(41), "a string of 41 characters"],
    ["postgres://ada:secret@db/shop", '"postgres://***@db/shop"'],
    [[1, 2], "an array of 2"],
    [{}, "an object (Object)"],
    [new Map(), "an object (Map)"],
    [Object.create(null), "an object"],
    [() => 1, "a function"],
    [Symbol("s"), "a symbol"],
  ])("%o is described as %s", (value, words) => {
    expect(describeArrival(value)).toBe(words);
  });

  it("never contains the content of a long string, a list or an object", () => {
    const secret = "Zq9-secret";
    const around = fc.string({ minLength: 31 });
    fc.assert(
      fc.property(around, (text) => {
        for (const value of [
          text + secret,
          [secret, text],
          { [secret]: text, text: secret },
          new Map([[secret, secret]]),
        ]) {
          expect(describeArrival(value)).not.toContain(secret);
        }
      }),
    );
  });

  it("is always short and a single line", () => {
    fc.assert(
      fc.property(
        fc.anything({ withDate: true, withMap: true, withSet: true, withTypedArray: true }),
        (value) => {
          const words = describeArrival(value);
          expect(words.length).toBeLessThan(300);
          expect(words).not.toMatch(/[\r\n]/);
        },
      ),
    );
  });
});
