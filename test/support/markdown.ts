// What the docs tests need to know of a Markdown page: its links, its anchors and its code blocks.

export interface Link {
  readonly target: string;
  readonly line: number;
}

export interface CodeBlock {
  readonly language: string;
  /** The words after the language, such as `run`. */
  readonly flags: readonly string[];
  readonly code: string;
  /** Of the first line of code. */
  readonly line: number;
}

interface Line {
  readonly text: string;
  readonly number: number;
}

interface Page {
  /** Lines outside code blocks. */
  readonly prose: readonly Line[];
  readonly blocks: readonly CodeBlock[];
}

const FENCE = /^\s*(`{3,}|~{3,})\s*([^`]*)$/;

function read(markdown: string): Page {
  const prose: Line[] = [];
  const blocks: CodeBlock[] = [];
  let open: { fence: string; info: string; line: number; code: string[] } | undefined;
  for (const [index, text] of markdown.split(/\r?\n/).entries()) {
    const [, fence = "", info = ""] = FENCE.exec(text) ?? [];
    if (open === undefined) {
      if (fence === "") prose.push({ text, number: index + 1 });
      else open = { fence, info, line: index + 2, code: [] };
    } else if (fence.startsWith(open.fence) && info.trim() === "") {
      const [language = "", ...flags] = open.info.trim().split(/\s+/);
      blocks.push({ language, flags, code: open.code.join("\n"), line: open.line });
      open = undefined;
    } else {
      open.code.push(text);
    }
  }
  if (open !== undefined) throw new Error(`The code block before line ${open.line} is never closed.`);
  return { prose, blocks };
}

export const codeBlocksOf = (markdown: string): readonly CodeBlock[] => read(markdown).blocks;

/** Inline links and images, reference definitions, and href or src of inline HTML. */
const LINKS = [
  /\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g,
  /^\s*\[[^\]]+\]:\s*<?([^\s>]+)/g,
  /\b(?:href|src)="([^"]+)"/g,
];

export function linksOf(markdown: string): Link[] {
  return read(markdown).prose.flatMap(({ text, number }) => {
    const shown = text.replace(/(`+).*?\1/g, "");
    return LINKS.flatMap((pattern) => [...shown.matchAll(pattern)]).map(([, target]) => ({
      target: target!,
      line: number,
    }));
  });
}

/** What follows a top folder of the repository, or ends like a source file. URLs and package names are neither. */
const PATH =
  /(?<![\w./@:-])(?:(?:src|test|scripts|bench|docs|examples|ops|\.ci|\.github)\/[\w./-]*|[\w./-]+\.ts\b)/g;

/** Files and folders of the repository that the prose of a page names. The targets of links are not among them. */
export function pathsOf(markdown: string): Link[] {
  return read(markdown).prose.flatMap(({ text, number }) => {
    const shown = text.replace(/\]\([^)]*\)/g, "]");
    return [...shown.matchAll(PATH)].map(([path]) => ({ target: path.replace(/[./]+$/, ""), line: number }));
  });
}

/** The anchors of a page as GitHub makes them: one a heading, numbered when repeated, and explicit ids. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const seen = new Map<string, number>();
  for (const { text } of read(markdown).prose) {
    for (const [, id] of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(id!);
    const heading = /^#{1,6}\s+(.*?)\s*#*\s*$/.exec(text)?.[1];
    if (heading === undefined) continue;
    const slug = slugOf(heading);
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    anchors.add(times === 0 ? slug : `${slug}-${times}`);
  }
  return anchors;
}

function slugOf(heading: string): string {
  return heading
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}
