// llms.txt: what the site has, for language models, by the sidebar. https://llmstxt.org describes the format.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sidebar } from "./sidebar.ts";

const DOCS = join(import.meta.dirname, "..");

/** The first sentence of a page, without its markup. */
function summaryOf(link: string): string {
  const page = readFileSync(join(DOCS, `${link}.md`), "utf8");
  const paragraphs = page.split(/\n{2,}/).slice(1);
  const first = paragraphs.find((text) => /^[A-Z`]/.test(text)) ?? "";
  const plain = first.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").replace(/\s+/g, " ");
  return /^.*?[.:](?=\s|$)/.exec(plain)?.[0].replace(/:$/, ".") ?? plain;
}

/** `base` is where the site begins. */
export function llmsText(base: string): string {
  const groups = sidebar
    .filter(({ text }) => text !== "Decisions")
    .map(({ text, items }) => {
      const lines = items.map(
        ({ text: title, link }) => `- [${title}](${base}${link.slice(1)}.html): ${summaryOf(link)}`,
      );
      return `## ${text}\n\n${lines.join("\n")}\n`;
    });
  return [
    "# xcache\n",
    "> Async caching for Node.js and TypeScript: one API over memory, Redis or Valkey, memcached and disk, with single flight across processes, tag-based invalidation, stale-while-revalidate, a near tier (L1), HTTP response caching and database sessions whose commits invalidate.\n",
    ...groups,
    `## Optional\n\n- [API reference](${base}api/index.html): Every export with its types.\n`,
  ].join("\n");
}
