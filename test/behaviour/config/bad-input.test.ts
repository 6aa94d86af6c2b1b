// Invalid values of every field are refused in each form: an object in code, an environment variable, a YAML file.
import { describe, expect, it } from "vitest";
import { configFromEnv } from "../../../src/config/env.ts";
import { resolveConfig } from "../../../src/config/resolve.ts";
import { envName, type FieldName, fieldNames, fields } from "../../../src/config/schema.ts";
import { configFromYaml } from "../../../src/config/yaml.ts";
import { toSnake } from "../../../src/core/wire.ts";
import { yamlFolder } from "../../config/file.ts";
import { idleBackend, idleCollector } from "../../config/store.ts";
import { configErrorOf } from "../../config/thrown.ts";

const { file } = yamlFolder();

/** What is given, and how the message must describe it. */
interface Bad {
  /** As an object has it; `code` and `yaml` may differ where YAML spells it otherwise. */
  readonly code?: readonly (readonly [value: unknown, arrived: string])[];
  readonly env?: readonly (readonly [text: string, arrived: string])[];
  readonly yaml?: readonly (readonly [text: string, arrived: string])[];
  /** Where inside the field the fault is, in code spelling. */
  readonly at?: string;
  readonly expected: string;
  /** How the message ends. Default: `, got ` and what arrived. */
  readonly ending?: string;
}

const endingOf = ({ ending }: Bad, arrived: string): string => ending ?? `, got ${arrived}`;

const OR_TEXT = 'or a text such as "500ms", "30s" or "5m"';
const LIFETIME = `a number of seconds, at least 0.001, or Infinity, ${OR_TEXT}`;
const TIMEOUT = `a finite number of seconds, at least 0.001, ${OR_TEXT}`;
const SPAN = `a finite number of seconds, at least 0, ${OR_TEXT}`;
const BOOLEAN = "true or false";

const badLifetimes: Bad = {
  code: [
    [0, "0"],
    [-1, "-1"],
    [Number.NaN, "NaN"],
    [Number.NEGATIVE_INFINITY, "-Infinity"],
    [0.0009, "0.0009"],
    ["60", '"60"'],
    [60n, "60n"],
    [null, "null"],
    [[60], "an array of 1"],
    [new Date(0), "an object (Date)"],
    [() => 60, "a function"],
  ],
  env: [
    ["0", "0"],
    ["-1", "-1"],
    ["NaN", '"NaN"'],
    ["-Infinity", '"-Infinity"'],
    ["60 s", '"60 s"'],
    ["0x10", '"0x10"'],
    ["1_000", '"1_000"'],
    ["1,5", '"1,5"'],
    ["1e400", '"1e400"'],
    [" ", '" "'],
  ],
  yaml: [
    ["0", "0"],
    ["-1", "-1"],
    [".nan", "NaN"],
    ["-.inf", "-Infinity"],
    ['"60"', '"60"'],
    ["60 s", '"60 s"'],
    ["", "null"],
    ["~", "null"],
    ["[60]", "an array of 1"],
    ["{ s: 60 }", "an object (Object)"],
  ],
  expected: LIFETIME,
};

const badTimeouts: Bad = {
  ...badLifetimes,
  code: [...(badLifetimes.code ?? []), [Number.POSITIVE_INFINITY, "Infinity"]],
  env: [...(badLifetimes.env ?? []), ["Infinity", "Infinity"]],
  yaml: [...(badLifetimes.yaml ?? []), [".inf", "Infinity"], ["Infinity", "Infinity"]],
  expected: TIMEOUT,
};

const badSpans: Bad = {
  code: [
    [-0.1, "-0.1"],
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    ["0", '"0"'],
    [null, "null"],
    [true, "true"],
  ],
  env: [
    ["-0.1", "-0.1"],
    ["Infinity", "Infinity"],
    ["soon", '"soon"'],
  ],
  yaml: [
    ["-0.1", "-0.1"],
    [".inf", "Infinity"],
    ["soon", '"soon"'],
    ["true", "true"],
  ],
  expected: SPAN,
};

const badBooleans: Bad = {
  code: [
    ["true", '"true"'],
    [1, "1"],
    [null, "null"],
    [{}, "an object (Object)"],
  ],
  env: [
    ["maybe", '"maybe"'],
    ["2", '"2"'],
    ["truee", '"truee"'],
  ],
  yaml: [
    ["yes", '"yes"'],
    ['"true"', '"true"'],
    ["1", "1"],
    ["", "null"],
  ],
  expected: BOOLEAN,
};

function badIntegers(expected: string, ...outside: number[]): Bad {
  const numbers = [...outside, 1.5].map((value) => [value, String(value)] as const);
  const texts = numbers.map(([value, arrived]) => [String(value), arrived] as const);
  return {
    code: [
      ...numbers,
      [Number.NaN, "NaN"],
      [Number.POSITIVE_INFINITY, "Infinity"],
      ["1", '"1"'],
      [null, "null"],
    ],
    env: [...texts, ["many", '"many"'], ["Infinity", "Infinity"]],
    yaml: [...texts, ["many", '"many"'], ["[]", "an array of 0"]],
    expected,
  };
}

const { env: _, ...nestedTimeouts } = badTimeouts;
const { env: __, ...nestedLifetimes } = badLifetimes;
const nestedIntegers = (...args: Parameters<typeof badIntegers>): Bad => {
  const { code = [], yaml = [], expected } = badIntegers(...args);
  return { code, yaml, expected };
};

const missing = (parts: string): string => `(it needs ${parts})`;
const without = <T extends object>(object: T, part: keyof T): object => ({ ...object, [part]: undefined });

const BAD: Readonly<Record<FieldName, readonly Bad[]>> = {
  kvUrl: [
    {
      code: [
        [42, "42"],
        [null, "null"],
        [new URL("redis://h"), "an object (URL)"],
      ],
      yaml: [
        ["42", "42"],
        ["", "null"],
        ["[redis://h]", "an array of 1"],
      ],
      expected: "a store address such as redis://localhost:6379/0",
    },
    {
      code: [
        ["localhost", '"localhost"'],
        ["", '""'],
      ],
      env: [["localhost", '"localhost"']],
      yaml: [["localhost", '"localhost"']],
      expected: "must begin with a scheme, as in redis://localhost:6379/0",
    },
    {
      code: [["redsi://u:hush@h", '"redsi://***@h"']],
      env: [["redsi://u:hush@h", '"redsi://***@h"']],
      yaml: [["redsi://u:hush@h", '"redsi://***@h"']],
      expected: "unknown scheme",
      ending: ': unknown scheme "redsi": did you mean "redis"?',
    },
  ],
  username: [
    {
      code: [
        ["", '""'],
        [7, "7"],
        [null, "null"],
      ],
      env: [["x".repeat(65_537), "a string of 65537 characters"]],
      yaml: [
        ['""', '""'],
        ["7", "7"],
      ],
      expected: "a non-empty string of at most 65536 bytes of UTF-8",
    },
  ],
  password: [
    {
      code: [
        ["", "a string of 0 characters"],
        [1234, "a value of type number"],
        [null, "a value of type object"],
        [{ password: "hush" }, "a value of type object"],
      ],
      env: [["x".repeat(65_537), "a string of 65537 characters"]],
      yaml: [
        ['""', "a string of 0 characters"],
        ["1234", "a value of type number"],
        ["[hush]", "a value of type object"],
      ],
      expected: "a non-empty string of at most 65536 bytes of UTF-8",
    },
  ],
  defaultTtl: [badLifetimes],
  keyPrefix: [
    {
      code: [
        ["", '""'],
        [7, "7"],
        [null, "null"],
        ["x".repeat(257), "a string of 257 characters"],
        ["\ud800", '"\\ud800"'],
      ],
      env: [["x".repeat(257), "a string of 257 characters"]],
      yaml: [
        ['""', '""'],
        ["7", "7"],
        ["x".repeat(257), "a string of 257 characters"],
      ],
      expected: "a non-empty string of at most 256 bytes of UTF-8",
    },
  ],
  enableFuzzy: [badBooleans],
  tables: [
    {
      code: [
        [[], "an array of 0"],
        ["users", '"users"'],
        [new Map(), "an object (Map)"],
        [null, "null"],
      ],
      yaml: [
        ["[users]", "an array of 1"],
        ["users", '"users"'],
        ["", "null"],
      ],
      env: [["users", '"users"']],
      expected: "a map from table name to { ttl, tags }",
    },
    {
      at: "users",
      code: [
        [60, "60"],
        [null, "null"],
        [["a"], "an array of 1"],
      ],
      yaml: [
        ["60", "60"],
        ["", "null"],
      ],
      expected: "{ ttl, tags }",
    },
    { at: "users.ttl", ...nestedLifetimes },
    {
      at: "users.tags",
      code: [
        ["", '""'],
        [{}, "an object (Object)"],
        [new Set(["a"]), "an object (Set)"],
      ],
      yaml: [
        ['""', '""'],
        ["", "null"],
      ],
      expected: "a string or a list of strings",
    },
  ],
  enableMetrics: [badBooleans],
  metricsRetentionDays: [badIntegers("a whole number from 1 to 3650", 0, -7, 3651)],
  backend: [
    {
      code: [
        ["memory", '"memory"'],
        [null, "null"],
        [true, "true"],
        [() => idleBackend, "a function"],
      ],
      env: [["memory", '"memory"']],
      expected: "a Backend object",
    },
    { code: [[without(idleBackend, "read"), "an object (Object)"]], expected: missing("read") },
    {
      code: [[without(idleBackend, "capabilities"), "an object (Object)"]],
      expected: missing("capabilities"),
    },
    { code: [[without(idleBackend, "name"), "an object (Object)"]], expected: missing("name") },
    { yaml: [["memory", '"memory"']], expected: "set in code, since a file cannot hold an object" },
  ],
  metrics: [
    {
      code: [
        ["statsd", '"statsd"'],
        [null, "null"],
        [false, "false"],
      ],
      env: [["statsd", '"statsd"']],
      expected: "a CacheMetrics or collector object",
    },
    { code: [[without(idleCollector, "gauge"), "an object (Object)"]], expected: missing("gauge") },
    { code: [[[idleCollector], "an array of 1"]], expected: missing("increment, gauge, histogram, timing") },
    { yaml: [["{}", "an object (Object)"]], expected: "set in code, since a file cannot hold an object" },
  ],
  nearCache: [
    {
      code: [
        [100, "100"],
        ["on", '"on"'],
        [null, "null"],
        [[], "an array of 0"],
      ],
      expected: "true, false or { maxEntries, maxBytes, values }",
    },
    { env: [["100", '"100"']], expected: "must be true or false, got" },
    { yaml: [["on", '"on"']], expected: "true, false or { max" },
    { yaml: [["100", "100"]], expected: "true, false or { max_entries, max_bytes, values }" },
    { at: "maxEntries", ...nestedIntegers("a whole number from 1 to 8388608", 0, -1, 2 ** 23 + 1) },
    { at: "maxBytes", ...nestedIntegers("a whole number of at least 1", 0, -1, 2 ** 53) },
    {
      at: "values",
      code: [
        ["own", '"own"'],
        [true, "true"],
      ],
      yaml: [["own", '"own"']],
      expected: '"copy" or "shared"',
    },
  ],
  operationTimeout: [badTimeouts],
  connectTimeout: [badTimeouts],
  poolSize: [badIntegers("a whole number from 1 to 1024", 0, -1, 1025)],
  circuitBreaker: [
    {
      code: [
        [false, "false"],
        [5, "5"],
        [null, "null"],
      ],
      expected: "{ failureThreshold, resetTimeout }",
    },
    {
      yaml: [
        ["false", "false"],
        ["", "null"],
      ],
      env: [["5", '"5"']],
      expected: "{ failure_threshold, reset_timeout }",
    },
    { at: "failureThreshold", ...nestedIntegers("a whole number of at least 1", 0, -1) },
    { at: "resetTimeout", ...nestedTimeouts },
  ],
  compression: [
    {
      code: [
        ["brotli", '"brotli"'],
        [1024, "1024"],
        [null, "null"],
      ],
      expected: "true, false or { thresholdBytes, algorithm }",
    },
    { env: [["brotli", '"brotli"']], expected: "must be true or false, got" },
    { yaml: [["brotli", '"brotli"']], expected: "true, false or { threshold" },
    { at: "thresholdBytes", ...nestedIntegers("a whole number of at least 0", -1) },
    {
      at: "algorithm",
      code: [
        ["lz4", '"lz4"'],
        ["Brotli", '"Brotli"'],
        [1, "1"],
        ["toString", '"toString"'],
      ],
      yaml: [
        ["lz4", '"lz4"'],
        ["", "null"],
      ],
      expected: '"brotli" or "gzip" or "zstd"',
    },
  ],
  staleIfError: [badSpans],
  staleWhileRevalidate: [badSpans],
  loadLimit: [badTimeouts],
  ttlJitter: [
    {
      code: [
        [1, "1"],
        [-0.1, "-0.1"],
        [Number.NaN, "NaN"],
        ["0.5", '"0.5"'],
        [null, "null"],
      ],
      env: [
        ["1", "1"],
        ["-0.1", "-0.1"],
        ["50%", '"50%"'],
      ],
      yaml: [
        ["1", "1"],
        ["-0.1", "-0.1"],
        ["50%", '"50%"'],
      ],
      expected: "a number from 0 to less than 1",
    },
  ],
  serialization: [
    {
      code: [
        ["yaml", '"yaml"'],
        ["JSON", '"JSON"'],
        [null, "null"],
        [true, "true"],
      ],
      env: [
        ["yaml", '"yaml"'],
        ["JSON", '"JSON"'],
      ],
      yaml: [
        ["yaml", '"yaml"'],
        ["true", "true"],
      ],
      expected: '"msgpack" or "json"',
    },
  ],
  encryption: [
    {
      code: [
        ["a secret that is not shown", '"***"'],
        [true, '"***"'],
      ],
      env: [["a secret that is not shown", '"***"']],
      yaml: [["a secret that is not shown", '"***"']],
      expected: "false or { keys, use, hide_keys }",
    },
    {
      at: "keys",
      code: [["a secret that is not shown", '"***"']],
      yaml: [["a secret that is not shown", '"***"']],
      expected: "an object of secrets by id, or a function that returns one",
    },
    {
      at: "use",
      code: [[1, "1"]],
      yaml: [["1", "1"]],
      expected: "a non-empty string of at most 255 bytes of UTF-8",
    },
    {
      at: "hideKeys",
      code: [[1, "1"]],
      yaml: [["1", "1"]],
      expected: "true, false or the id of a key",
    },
  ],
};

const pathOf = (field: FieldName, { at }: Bad): string[] => [field, ...(at?.split(".") ?? [])];

/** `users` is a table's name, the rest are fields. */
const spelledInYaml = (name: string): string => (name === "users" ? name : toSnake(name));

const rows = fieldNames().flatMap((field) =>
  BAD[field].map((bad) => ({ field, bad, path: pathOf(field, bad) })),
);

describe("in code", () => {
  const cases = rows.flatMap(({ field, bad, path }) =>
    (bad.code ?? []).map(([value, arrived]) => ({ field, path, value, arrived, bad })),
  );

  it.each(cases)("$path given as $arrived is refused", ({ path, value, arrived, bad }) => {
    const given = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
    const error = configErrorOf(() => resolveConfig(given));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toMatch(new RegExp(`^${path.join("\\.")}\\b`));
    expect(error.message).toContain(bad.expected);
    expect(error.message.endsWith(endingOf(bad, arrived)), error.message).toBe(true);
  });

  it("every field has a case", () => {
    expect(new Set(cases.map(({ field }) => field))).toEqual(new Set(fieldNames()));
  });
});

describe("in the environment", () => {
  const cases = rows.flatMap(({ field, bad }) =>
    (bad.env ?? []).map(([text, arrived]) => ({
      variable: envName(field),
      text,
      arrived,
      bad,
    })),
  );

  it.each(cases)("$variable set to $text is refused", ({ variable, text, arrived, bad }) => {
    const error = configErrorOf(() => configFromEnv({ [variable]: text }));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toMatch(new RegExp(`^${variable}\\b`));
    expect(error.message).toContain(bad.expected);
    expect(error.message.endsWith(endingOf(bad, arrived)), error.message).toBe(true);
  });

  it("every field has a case, including those that text cannot express", () => {
    expect(new Set(cases.map(({ variable }) => variable))).toEqual(new Set(fieldNames().map(envName)));
  });
});

describe("in YAML", () => {
  const cases = rows.flatMap(({ field, bad, path }) =>
    (bad.yaml ?? []).map(([text, arrived]) => ({
      field,
      path: path.map(spelledInYaml),
      text,
      arrived,
      bad,
    })),
  );

  it.each(cases)("$path written as $text is refused", ({ path, text, arrived, bad }) => {
    const lines = path.map((name, depth) => `${"  ".repeat(depth)}${name}:`);
    const name = file(`# a comment\n${lines.join("\n")} ${text}\n`);
    const error = configErrorOf(() => configFromYaml(name));
    const [line, column] = [path.length + 1, 2 * path.length - 1];
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message.startsWith(`${name}:${line}:${column}: ${path.join(".")}`), error.message).toBe(
      true,
    );
    expect(error.message).toContain(bad.expected);
    expect(error.message.endsWith(endingOf(bad, arrived)), error.message).toBe(true);
  });

  it("every field has a case, including those that can only be set in code", () => {
    expect(new Set(cases.map(({ field }) => field))).toEqual(new Set(fieldNames()));
  });
});

describe("a value that is not a configuration", () => {
  it.each([
    [null, "null"],
    [42, "42"],
    ["redis://u:hush@h", '"redis://***@h"'],
    [[], "an array of 0"],
    [new Map(), "an object (Map)"],
    [() => ({}), "a function"],
    [new (class Config {})(), "an object (Config)"],
  ])("%o is refused", (given, arrived) => {
    const error = configErrorOf(() => resolveConfig(given));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toBe(`the configuration must be an object, got ${arrived}`);
  });
});

describe("an invalid tag or table name", () => {
  it.each([
    [
      { users: { tags: ["a", ""] } },
      'tables.users.tags[1] must be a non-empty string of at most 65536 bytes of UTF-8, got ""',
    ],
    [
      { users: { tags: [1] } },
      "tables.users.tags[0] must be a non-empty string of at most 65536 bytes of UTF-8, got 1",
    ],
    [{ "": {} }, 'tables[""] must be a non-empty string of at most 65536 bytes of UTF-8, got ""'],
    [{ "a.b": { ttl: 0 } }, `tables["a.b"].ttl must be ${LIFETIME}, got 0`],
  ])("%j is refused at its place", (tables, message) => {
    expect(configErrorOf(() => resolveConfig({ tables })).message).toBe(message);
  });

  it("a hole in a list of tags is not a tag", () => {
    // biome-ignore lint/suspicious/noSparseArray: the case under test
    expect(configErrorOf(() => resolveConfig({ tables: { users: { tags: [, "a"] } } })).message).toContain(
      "tags[0] must be",
    );
  });
});

describe("unknown keys in code", () => {
  it.each([
    [{ default_ttl: 5 }, 'unknown field "default_ttl": did you mean "defaultTtl"?'],
    [{ defualtTtl: 5 }, 'unknown field "defualtTtl": did you mean "defaultTtl"?'],
    [{ DefaultTTL: 5 }, 'unknown field "DefaultTTL": did you mean "defaultTtl"?'],
    [{ redisUrl: "x" }, 'unknown field "redisUrl": did you mean "kvUrl"?'],
    [{ circuit_breaker: {} }, 'unknown field "circuit_breaker": did you mean "circuitBreaker"?'],
    [
      { circuitBreaker: { failure_threshold: 1 } },
      'unknown field "circuitBreaker.failure_threshold": did you mean "failureThreshold"?',
    ],
    [{ nearCache: { maxEntrys: 1 } }, 'unknown field "nearCache.maxEntrys": did you mean "maxEntries"?'],
    [
      { compression: { treshold: 1 } },
      'unknown field "compression.treshold": use one of thresholdBytes, algorithm',
    ],
    [{ tables: { users: { tag: [] } } }, 'unknown field "tables.users.tag": did you mean "tags"?'],
    [
      JSON.parse('{"__proto__": {"x": 1}}') as object,
      `unknown field "__proto__": use one of ${fieldNames().join(", ")}`,
    ],
    [{ wibble: undefined }, `unknown field "wibble": use one of ${fieldNames().join(", ")}`],
    [{ "redis://u:hush@h": 1 }, `unknown field "redis://***@h": use one of ${fieldNames().join(", ")}`],
  ])("%j is refused with the nearest name", (given, message) => {
    const error = configErrorOf(() => resolveConfig(given));
    expect(error.code).toBe("CONFIG_UNKNOWN_FIELD");
    expect(error.message).toBe(message);
  });

  it("a very long key is not repeated in full, nor with its line breaks", () => {
    const { message } = configErrorOf(() => resolveConfig({ [`a\nb${"x".repeat(100_000)}`]: 1 }));
    expect(message.length).toBeLessThan(500);
    expect(message).not.toContain("\n");
  });

  it("the snake_case name of every field suggests its camelCase name", () => {
    for (const field of fieldNames().filter((each) => toSnake(each) !== each)) {
      const { message } = configErrorOf(() => resolveConfig({ [toSnake(field)]: fields()[field].default }));
      expect(message).toContain(`did you mean "${field}"?`);
    }
  });
});
