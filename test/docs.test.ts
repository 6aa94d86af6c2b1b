// Holds the docs to the truth: links lead somewhere, code blocks compile, and those marked `run` run.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { whyStale } from "../scripts/build.mjs";
import { anchorsOf, codeBlocksOf, linksOf } from "./support/markdown.ts";
import { programOf, type Snippet, toJavaScript, typeErrorsOf } from "./support/snippet.ts";

const ROOT = join(import.meta.dirname, "..");
const FOLDERS = ["docs", "examples", "ops"];

function markdownUnder(folder: string): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.includes("node_modules"))
    .map((path) => join(folder, path));
}

const readPage = (page: string): string => readFileSync(join(ROOT, page), "utf8");
const pages = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...FOLDERS.flatMap(markdownUnder),
];

/** Why a link does not lead anywhere; undefined when it does. Addresses of other sites are not followed. */
function whyBroken(
  page: string,
  target: string,
  exists: (path: string) => boolean,
  text: (path: string) => string,
) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) return undefined;
  if (target.startsWith("/")) return "a link inside the repository is relative";
  const [path = "", anchor] = decodeURI(target).split("#");
  const file = path === "" ? page : normalize(join(dirname(page), path));
  if (!exists(file)) return `${file} does not exist`;
  if (anchor === undefined || !file.endsWith(".md")) return undefined;
  return anchorsOf(text(file)).has(anchor) ? undefined : `${file} has no heading #${anchor}`;
}

describe("links", () => {
  test.each(pages)("of %s lead to a file and a heading that exist", (page) => {
    const broken = linksOf(readPage(page)).flatMap(({ target, line }) => {
      const problem = whyBroken(page, target, (path) => existsSync(join(ROOT, path)), readPage);
      return problem === undefined ? [] : [`${page}:${line} ${target}: ${problem}`];
    });
    expect(broken).toEqual([]);
  });

  test("are judged right or wrong by file and heading", () => {
    const tree: Record<string, string> = {
      "README.md": "# x",
      "docs/guide.md":
        "# The `get` call\n## Twice\n## Twice\n```\n# not a heading\n```\n<a id='n'></a><a id=\"own\"></a>",
    };
    const judge = (target: string) =>
      whyBroken(
        "docs/guide.md",
        target,
        (path) => path in tree,
        (path) => tree[path]!,
      );
    for (const good of [
      "../README.md",
      "#the-get-call",
      "guide.md#twice-1",
      "#own",
      "https://example.org/x",
    ]) {
      expect(judge(good), good).toBeUndefined();
    }
    for (const bad of ["README.md", "#twice-2", "../README.md#y", "/README.md", "#not-a-heading"]) {
      expect(judge(bad), bad).toBeDefined();
    }
  });

  test("are found inline, in definitions and in HTML, but not in code", () => {
    const page =
      '[a](b.md "t") ![i](i.png) `[no](no.md)`\n[ref]: c.md\n<img src="d.png">\n```\n[no](no.md)\n```\n';
    expect(linksOf(page).map(({ target, line }) => `${line} ${target}`)).toEqual([
      "1 b.md",
      "1 i.png",
      "2 c.md",
      "3 d.png",
    ]);
  });
});

describe("code blocks", () => {
  const blocks = ["README.md", ...markdownUnder("docs/guide")].flatMap((page) =>
    codeBlocksOf(readPage(page))
      .filter(({ language }) => language === "ts")
      .map((block) => ({ page, ...block })),
  );

  test("of the README and the guide compile against the sources", { timeout: 60_000 }, () => {
    expect(typeErrorsOf(blocks)).toEqual([]);
  });

  test("that do not compile are reported by page and line", { timeout: 60_000 }, () => {
    const page = "Text\n\n```ts\nconst text: string = 'x';\nconst count: number = text;\n```\n";
    const snippets = codeBlocksOf(page).map((block): Snippet => ({ page: "docs/wrong.md", ...block }));
    expect(typeErrorsOf(snippets)).toEqual([
      "docs/wrong.md:5 Type 'string' is not assignable to type 'number'.",
    ]);
  });

  for (const block of blocks.filter(({ flags }) => flags.includes("run"))) {
    test(`at ${block.page}:${block.line} runs to its end`, async () => {
      expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
      const program = programOf(block);
      mkdirSync(dirname(program), { recursive: true });
      writeFileSync(program, toJavaScript(block));
      await promisify(execFile)(process.execPath, [program], { cwd: ROOT, timeout: 15_000 });
    });
  }
});
