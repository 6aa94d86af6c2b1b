// Holds the docs to the truth: links lead somewhere, code compiles, configuration is accepted. test/docs/ runs the code.
import { existsSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { whyStale } from "../../scripts/build/build.mjs";
import { resolveConfig } from "../../src/config/resolve.ts";
import { configFromYaml } from "../../src/config/yaml.ts";
import { yamlFolder } from "../config/file.ts";
import { anchorsOf, codeBlocksOf, linksOf } from "../support/markdown.ts";
import { exampleSnippets } from "./example-snippets.ts";
import { pages, ROOT, readPage } from "./pages.ts";
import { snippetsOf, typeErrorsOf } from "./snippet.ts";

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
  const wrong = [
    ...["Text", "", "```ts", "const text: string = 'x';", "const count: number = text;", "```", ""],
    ...["Then", "```ts continued", "", "const sum: string = count;", "```"],
  ].join("\n");

  test("of the pages and every @example of the sources compile, and those that do not are told by page and line", {
    timeout: 180_000,
  }, () => {
    expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
    const snippets = pages.flatMap((page) => snippetsOf(page, readPage(page)));
    const examples = exampleSnippets();
    expect(examples.length).toBeGreaterThan(20);
    expect(typeErrorsOf([...snippets, ...examples, ...snippetsOf("docs/wrong.md", wrong)])).toEqual([
      "docs/wrong.md:5 Type 'string' is not assignable to type 'number'.",
      "docs/wrong.md:11 Type 'number' is not assignable to type 'string'.",
    ]);
  });

  test("have no word behind their language that means nothing", () => {
    expect(() => snippetsOf("docs/wrong.md", "```ts continue\n```")).toThrow("docs/wrong.md:2 `continue`");
  });
});

/** Blocks of a language on all pages, as `[page:line, code, words behind the language]`. */
function blocksOf(language: string) {
  return pages.flatMap((page) =>
    codeBlocksOf(readPage(page))
      .filter((block) => block.language === language)
      .map(({ line, code, flags }) => [`${page}:${line}`, code, flags] as const),
  );
}

describe("YAML and JSON blocks", () => {
  const { file } = yamlFolder();

  test.each(blocksOf("yaml").filter(([, , flags]) => !flags.includes("plain")))(
    "at %s is a configuration that is accepted",
    (_, code) => {
      expect(() => resolveConfig(configFromYaml(file(code)))).not.toThrow();
    },
  );

  test.each(blocksOf("yaml").filter(([, , flags]) => flags.includes("plain")))(
    "at %s, of another program, can be read",
    (_, code) => {
      expect(parse(code)).toBeTypeOf("object");
    },
  );

  test.each(blocksOf("json"))("at %s can be read", (_, code) => {
    expect(JSON.parse(code)).toBeTypeOf("object");
  });
});

/** What follows `start` in the text of all pages, up to the end of the line or of the code. */
function mentionsOf(start: string): { readonly page: string; readonly words: readonly string[] }[] {
  return pages.flatMap((page) =>
    [...readPage(page).matchAll(new RegExp(`\\b${start} ([^\\x60\\n]+)`, "g"))].map(([, rest]) => ({
      page,
      words: rest!.trim().split(/\s+/),
    })),
  );
}

describe("commands", () => {
  test("`npm run` names a script of package.json", () => {
    const { scripts } = JSON.parse(readPage("package.json")) as { scripts: Record<string, string> };
    const named = mentionsOf("npm run").map(({ page, words }) => ({
      page,
      script: words.find((word) => !word.startsWith("-"))!,
    }));
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(({ script }) => scripts[script] === undefined)).toEqual([]);
  });

  test("`npx xcache` names a command and flags that it has", () => {
    const [preface = "", ...sections] = readPage("docs/reference/cli.md").split(/^## xcache/m);
    const help = new Map(sections.map((text) => [text.split("\n", 1)[0]!.trim(), text]));
    const knows = (command: string, flag: string) =>
      [help.get(command), help.get(""), preface].some((text) => text?.includes(flag));
    const mentions = mentionsOf("npx xcache");
    expect(mentions.length).toBeGreaterThan(5);
    const wrong = mentions.flatMap(({ page, words }) => {
      const command = words[0]!.startsWith("-") ? "" : words[0]!;
      const flags = words.filter((word) => word.startsWith("--"));
      if (!help.has(command)) return [`${page}: xcache ${command}`];
      return flags.filter((flag) => !knows(command, flag)).map((flag) => `${page}: ${command} ${flag}`);
    });
    expect(wrong).toEqual([]);
  });
});
