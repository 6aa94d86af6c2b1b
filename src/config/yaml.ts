// Configuration from a YAML file. The parser is loaded only when a file is read: it takes about 50 ms.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { nodeFs, requirePackage } from "../core/lazy-builtin.ts";
import { toSnake } from "../core/wire.ts";
import { type Origin, rejectValue, rootOf } from "./place.ts";
import { checkConfig } from "./resolve.ts";
import { FIELD_NAMES, FIELDS, wireName } from "./schema.ts";
import type { CheckedConfig } from "./types.ts";
import { MOST_ALIASES, type ParsedYaml, parseYaml, type Yaml } from "./yaml-parse.ts";

/** Far beyond any real configuration; a larger file is somebody's mistake. */
const MOST_BYTES = 256 * 1024;

const READING: Readonly<Record<string, string>> = {
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
    return unreadable(`cannot read ${JSON.stringify(path)}: ${READING[code] ?? code}`);
  }
  if (bytes.length > MOST_BYTES) {
    return unreadable(`${path}: must be at most ${MOST_BYTES} bytes, got ${bytes.length}`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return unreadable(`${path}: must be UTF-8 text, got other bytes`);
  }
}

/** The position of what stands at a path, or of the nearest mapping around it. */
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

function refuseCodeOnly(given: object, origin: Origin): void {
  for (const field of FIELD_NAMES.filter((each) => FIELDS[each].codeOnly)) {
    const key = wireName(field);
    if (!Object.hasOwn(given, key)) continue;
    const value: unknown = Reflect.get(given, key);
    rejectValue({ origin, path: [key] }, "given in code, since a file cannot hold an object", value);
  }
}

/**
 * The fields set in a YAML file, checked; an empty file sets none. Throws ConfigError: CONFIG_UNREADABLE for a file that
 * cannot be read or is not valid YAML, else as resolveConfig does; messages about its content have the line and column.
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
    given = parsed.document.toJS({ maxAliasCount: MOST_ALIASES });
  } catch {
    // The parser's own words could quote the file.
    return unreadable(`${path}: its aliases stand for too much`);
  }
  if (given === null || given === undefined) return {};
  if (!yaml.isMap(parsed.document.contents)) return rejectValue(rootOf(origin), "a mapping of fields", given);
  refuseCodeOnly(given, origin);
  return checkConfig(given, origin);
}
