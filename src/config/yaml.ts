// Configuration from a YAML file. The parser is loaded lazily, because loading it takes tens of milliseconds.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { nodeFs, requirePackage } from "../core/lazy-builtin.ts";
import { toSnake } from "../core/wire.ts";
import { type Origin, rejectValue, rootOf } from "./place.ts";
import { checkConfig } from "./resolve.ts";
import { fieldNames, fields, wireName } from "./schema.ts";
import type { CheckedConfig } from "./types.ts";
import { MAX_ALIASES, type ParsedYaml, parseYaml, type Yaml } from "./yaml-parse.ts";

/** Far larger than any real configuration; a bigger file is a mistake. */
const MAX_BYTES = 256 * 1024;

const READ_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  ENOTDIR: "it does not exist",
  EISDIR: "it is a directory",
  EACCES: "permission denied",
  EPERM: "permission denied",
};

function unreadable(message: string): never {
  throw new ConfigError("CONFIG_UNREADABLE", message);
}

function readText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = nodeFs().readFileSync(path);
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    return unreadable(`cannot read ${JSON.stringify(path)}: ${READ_ERRORS[code] ?? code}`);
  }
  if (bytes.length > MAX_BYTES) {
    return unreadable(`${path}: must be at most ${MAX_BYTES} bytes, got ${bytes.length}`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return unreadable(`${path}: must be UTF-8 text, got other bytes`);
  }
}

/** Returns the position of the value at a path, or of the closest enclosing mapping. */
function locator(
  yaml: Yaml,
  file: string,
  { document, lines }: ParsedYaml,
): (path: readonly string[]) => string {
  return (path) => {
    let node: unknown = document.contents;
    let offset = 0;
    for (const key of path) {
      if (yaml.isAlias(node)) node = node.resolve(document);
      const pair = yaml.isMap(node) ? node.items.find((each) => String(each.key) === key) : undefined;
      const start = yaml.isNode(pair?.key) ? pair.key.range?.[0] : undefined;
      node = yaml.isSeq(node) ? node.get(Number(key), true) : pair?.value;
      offset = start ?? (yaml.isNode(node) ? node.range?.[0] : undefined) ?? offset;
    }
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
}

function rejectCodeOnly(given: object, origin: Origin): void {
  for (const field of fieldNames().filter((each) => fields()[each].codeOnly)) {
    const key = wireName(field);
    if (!Object.hasOwn(given, key)) continue;
    const value: unknown = Reflect.get(given, key);
    rejectValue({ origin, path: [key] }, "set in code, since a file cannot hold an object", value);
  }
}

/**
 * The fields set in a YAML file, checked; an empty file sets none. Throws ConfigError: CONFIG_UNREADABLE for a file that
 * cannot be read or is not valid YAML, otherwise like resolveConfig, with line and column in the message.
 */
export function configFromYaml(path: string): CheckedConfig {
  if (typeof path !== "string" || path === "") {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `path must be the name of a YAML file, got ${describeArrival(path)}`,
    );
  }
  const source = readText(path);
  const yaml = requirePackage("yaml") as Yaml;
  const parsed = parseYaml(yaml, path, source);
  const origin: Origin = {
    whole: "the file",
    spell: (field) => toSnake(field),
    locate: locator(yaml, path, parsed),
  };
  let given: unknown;
  try {
    given = parsed.document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch {
    // The parser's own message could quote the file.
    return unreadable(`${path}: its aliases expand to too much data`);
  }
  if (given === null || given === undefined) return {};
  if (!yaml.isMap(parsed.document.contents)) return rejectValue(rootOf(origin), "a mapping of fields", given);
  rejectCodeOnly(given, origin);
  return checkConfig(given, origin);
}
