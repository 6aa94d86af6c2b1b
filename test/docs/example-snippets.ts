// The `@example` blocks of the public declarations as programs: with the imports, and the names of the reader's own that they use.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./pages.ts";
import type { Snippet } from "./snippet.ts";

/** What a reader has already, by name. */
const READERS: Readonly<Record<string, string>> = {
  cache: 'import("xcache").XCache',
  fetchUser: "(id: number) => Promise<{ name: string }>",
  askModel: "() => Promise<string>",
  currentToken: "() => Promise<string>",
  pool: 'import("pg").Pool',
};

/** The application, by the adapter's file. */
const APPS: Readonly<Record<string, string>> = {
  "web/express.ts": 'import("express").Express',
  "web/fastify.ts": 'import("fastify").FastifyInstance',
  "web/hono.ts": 'import("hono").Hono',
  "web/koa.ts": 'import("koa")',
};

/** The entry points whose names an example may use besides those of `xcache`, by the beginning of its file. */
const ENTRIES = ["web/", "db/feed", "vector/", "testing/", "dashboard/"];

/** Names that an entry point exports, from its source. */
function exportedBy(path: string): ReadonlySet<string> {
  const text = readFileSync(join(ROOT, "src", path), "utf8");
  const lists = [...text.matchAll(/^export (?!type )\{([^}]*)\}/gms)].flatMap(([, list = ""]) =>
    list.split(","),
  );
  const listed = lists
    .filter((name) => !/^\s*type /.test(name))
    .map((name) => name.trim().split(" as ").at(-1)!);
  const declared = [...text.matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)];
  return new Set([...listed, ...declared.map(([, name]) => name!)]);
}

function importsFor(path: string, words: ReadonlySet<string>, code: string): string {
  const entry = ENTRIES.find((start) => path.startsWith(start));
  const file = entry?.endsWith("/") && entry !== "web/" ? `${entry}index.ts` : path;
  const specifier = `xcache/${file.replace(/(\/index)?\.ts$/, "")}`;
  const sources: [string, ReadonlySet<string>][] = [
    ...(entry === undefined ? [] : [[specifier, exportedBy(file)] as [string, ReadonlySet<string>]]),
    ["xcache", exportedBy("index.ts")],
    ["node:http", new Set(["createServer"])],
  ];
  const lines: string[] = [];
  const taken = new Set<string>();
  for (const [from, names] of sources) {
    const used = [...words].filter((word) => names.has(word) && !taken.has(word) && !declares(code, word));
    for (const name of used) taken.add(name);
    if (used.length > 0) lines.push(`import { ${used.join(", ")} } from "${from}";`);
  }
  return lines.join(" ");
}

const declares = (code: string, name: string): boolean =>
  new RegExp(`(?:const|let) (?:\\{[^}]*)?\\b${name}\\b`).test(code);

/** Every example of src/, in one program each. */
export function exampleSnippets(): readonly Snippet[] {
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".ts"),
  );
  return files.flatMap((path) => {
    const text = readFileSync(join(ROOT, "src", path), "utf8");
    return [...text.matchAll(/\* @example\n\s*\* ```ts\n([\s\S]*?)\n\s*\* ```/g)].map((found): Snippet => {
      const code = found[1]!.replace(/^\s*\* ?/gm, "");
      const words = new Set(code.match(/\b[A-Za-z]\w*\b/g));
      const readers = Object.entries({ ...READERS, ...(APPS[path] && { app: APPS[path] }) })
        .filter(([name]) => words.has(name) && !declares(code, name))
        .map(([name, type]) => `declare const ${name}: ${type};`);
      const preamble = [importsFor(path, words, code), ...readers].join(" ");
      const line = text.slice(0, found.index).split("\n").length + 2;
      return {
        page: `src/${path}`,
        language: "ts",
        legacy: false,
        // Its own line does not count: it is as if it were above the example.
        parts: [
          { line: line - 1, code: preamble },
          { line, code },
        ],
      };
    });
  });
}
