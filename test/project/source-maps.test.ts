// What the maps of the published files say, compared with the sources.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseAst } from "rollup/parseAst";
import { beforeAll, describe, expect, it } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { runFolder } from "../support/run-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const DIST = join(ROOT, "dist");
const MAPPED_BYTES = 32_000;

const filesIn = (ending: string): readonly string[] =>
  readdirSync(DIST, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(ending))
    .map((path) => path.replaceAll("\\", "/"));

const textOf = (path: string): string => readFileSync(join(DIST, path), "utf8");

interface Node {
  readonly type?: string;
  readonly id?: Node | null;
  readonly key?: Node;
  readonly init?: Node | null;
  readonly callee?: Node;
  readonly property?: Node;
  readonly computed?: boolean;
  readonly name?: string;
  readonly start?: number;
}

function nodesIn(node: unknown): readonly Node[] {
  if (typeof node !== "object" || node === null) return [];
  return [node, ...Object.values(node).flatMap(nodesIn)];
}

/** Calls of methods: the name, which is the same in the source, and where it begins in the file. */
function methodCalls(code: string): readonly { readonly name: string; readonly at: number }[] {
  return nodesIn(parseAst(code)).flatMap(({ type, callee }) => {
    if (type !== "CallExpression" || callee?.property?.type !== "Identifier" || callee.computed) return [];
    return [{ name: callee.property.name!, at: callee.property.start! }];
  });
}

/** Names that a stack trace shows, of all methods and of the classes and functions at the top. */
function lastingNames(code: string): readonly string[] {
  const { body } = parseAst(code);
  const declared: readonly Node[] = body.flatMap((each): readonly object[] =>
    "declarations" in each ? each.declarations : [each],
  );
  const top = declared.filter(({ type = "", init }) => /Class|Function/.test(init?.type ?? type));
  const methods = nodesIn(body).filter(({ type, computed }) => type === "MethodDefinition" && !computed);
  return [...top.map(({ id }) => id), ...methods.map(({ key }) => key)].flatMap((each) => each?.name ?? []);
}

/** Line and column of a place in a text, both from 0. */
function placesIn(text: string): (at: number) => readonly [line: number, column: number] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (at) => {
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle]! <= at) low = middle;
      else high = middle;
    }
    return [low, at - starts[low]!];
  };
}

const sourceLines = new Map<string, readonly string[]>();

/** The lines of a source that is named in the map of a file. */
function linesOf(file: string, source: string): readonly string[] {
  const path = join(DIST, file, "..", source);
  const lines = sourceLines.get(path) ?? readFileSync(path, "utf8").split("\n");
  sourceLines.set(path, lines);
  return lines;
}

describe("the maps of the published files", () => {
  beforeAll(() => {
    expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  });

  it("belong to the large files, whose names are short", () => {
    const isCode = (path: string): boolean => path !== "dashboard/page.js";
    const large = filesIn(".js").filter(
      (path) => isCode(path) && statSync(join(DIST, path)).size >= MAPPED_BYTES,
    );
    const mapped = filesIn(".js.map").map((path) => path.replace(/\.map$/, ""));
    expect(large.length).toBeGreaterThan(5);
    for (const path of large) expect(mapped).toContain(path);
    for (const path of filesIn(".js")) {
      const named = /\n\/\/# sourceMappingURL=(\S+)\n$/.exec(textOf(path))?.[1];
      expect(named, path).toBe(mapped.includes(path) ? `${path.split("/").at(-1)}.map` : undefined);
    }
  });

  it("name sources of this repository and do not contain them", () => {
    for (const path of filesIn(".js.map")) {
      const { sources, sourcesContent } = JSON.parse(textOf(path)) as {
        readonly sources: readonly string[];
        readonly sourcesContent?: unknown;
      };
      expect(sourcesContent).toBeUndefined();
      for (const source of sources) {
        expect(source).toMatch(/^(\.\.\/)+src\//);
        expect(linesOf(path, source).length, source).toBeGreaterThan(0);
      }
    }
  });

  it("lead from the call of a method to a line that has its name", () => {
    let calls = 0;
    const wrong: string[] = [];
    for (const path of filesIn(".js.map")) {
      const file = path.replace(/\.map$/, "");
      const map = new SourceMap(JSON.parse(textOf(path)));
      const code = textOf(file);
      const placeOf = placesIn(code);
      for (const { name, at } of methodCalls(code)) {
        calls++;
        const [line, column] = placeOf(at);
        const entry = map.findEntry(line, column);
        const found =
          "originalSource" in entry ? linesOf(file, entry.originalSource)[entry.originalLine] : undefined;
        if (!found?.includes(name)) wrong.push(`${file}:${line + 1}:${column + 1} ${name}: ${found}`);
      }
    }
    expect(calls).toBeGreaterThan(5_000);
    expect(wrong.length / calls, wrong.join("\n")).toBeLessThanOrEqual(0.01);
  });

  it("are not needed for the names of classes, methods and functions outside of functions", () => {
    for (const path of filesIn(".js.map")) {
      const { sources } = JSON.parse(textOf(path)) as { readonly sources: readonly string[] };
      const words = new Set(
        sources.flatMap((source) => linesOf(path, source).flatMap((line) => line.match(/[\w$]+/g) ?? [])),
      );
      const names = lastingNames(textOf(path.replace(/\.map$/, "")));
      expect(names.length).toBeGreaterThan(50);
      // Where two sources have the same name, the bundler numbers them.
      expect(names.filter((name) => !words.has(name.replace(/\$\d+$/, "")))).toEqual([]);
    }
  });
});

describe("a stack trace", () => {
  /** What a program writes to stderr that ends with an error of the library. */
  function traceWith(...args: readonly string[]): string {
    const text = `
      import { XCache } from ${JSON.stringify(pathToFileURL(join(DIST, "index.js")).href)};
      new XCache({ kvUrl: "memory://", poolSize: 0 });
    `;
    const program = join(runFolder(), "refused.mjs");
    writeFileSync(program, text);
    const { status, stderr } = spawnSync(process.execPath, [...args, program], { encoding: "utf8" });
    expect(status).toBe(1);
    return stderr;
  }

  it("names functions, methods and classes as the sources do", () => {
    const trace = traceWith();
    expect(trace).toContain("ConfigError: poolSize must be");
    expect(trace).toMatch(/at checkGiven \(.+\/chunk\/cache\.js:\d+:\d+\)/);
    expect(trace).toMatch(/at new XCache \(.+\/chunk\/cache\.js:\d+:\d+\)/);
  });

  it("names files and lines of the sources with --enable-source-maps", () => {
    const trace = traceWith("--enable-source-maps");
    const frames = [...trace.matchAll(/ at (?:new )?([\w.]+) \((.+)[\\/](src[\\/].+\.ts):(\d+):\d+\)/g)];
    expect(frames.map(([, name, root]) => `${name} in ${root}`)).toContain(`XCache in ${ROOT}`);
    const lines = frames.map(([, , root = "", path = "", line]) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .at(Number(line) - 1),
    );
    const called = frames.map(([, name = ""]) => name.replace(/^.*\./, ""));
    expect(lines[0]).toContain("throw new ConfigError");
    for (const [index, line] of lines.entries())
      if (index > 0) expect(line?.replace(/<\w+>/, "")).toContain(`${called[index - 1]}(`);
    expect(frames.length).toBeGreaterThan(4);
  });
});
