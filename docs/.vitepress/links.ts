// Makes the links and anchors of the pages work on the site as they do in the repository.
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { MarkdownRenderer } from "vitepress";

/** The name of a heading as GitHub makes it, so that one link serves both places. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

/** Where the repository can be looked at, from package.json; undefined while it names none. */
export function repositoryUrl(): string | undefined {
  const file = join(import.meta.dirname, "../../package.json");
  const { repository } = JSON.parse(readFileSync(file, "utf8")) as { repository?: string | { url: string } };
  const url = typeof repository === "string" ? repository : repository?.url;
  return url?.replace(/^git\+/, "").replace(/\.git$/, "");
}

/** The path from the root of the repository where a link leaves the docs; undefined where it stays. */
export function leaving(page: string, target: string): string | undefined {
  if (/^([a-z][a-z0-9+.-]*:|\/|#)/i.test(target)) return undefined;
  const path = normalize(join("docs", dirname(page), target));
  return path.startsWith("docs/") ? undefined : path;
}

/** Where the API reference describes a file of the repository, from the root of the site; undefined unless it is an entry point. */
export function apiPage(path: string): string | undefined {
  const [, module] =
    /^src\/(index|(?:db|ecosystem|web)\/[\w-]+|(?:dashboard|testing|vector)\/index)\.ts$/.exec(path) ?? [];
  return module && `api/modules/${module.replace(/\/index$/, "").replace("/", "_")}.html`;
}

/**
 * Links to entry points lead to the API reference, links to other files outside of docs/ to the repository; while nobody knows
 * where that is, they are plain text.
 */
export function linkToRepository(md: MarkdownRenderer, repository = repositoryUrl(), base = "/"): void {
  md.core.ruler.push("link_to_repository", ({ tokens, env }) => {
    for (const { children } of tokens) {
      const dropped: number[] = [];
      for (const [index, token] of (children ?? []).entries()) {
        if (token.type === "link_close" && dropped.pop() !== undefined) token.type = "text";
        if (token.type !== "link_open") continue;
        const path = leaving(String(env.relativePath ?? ""), token.attrGet("href") ?? "");
        if (path === undefined) continue;
        const api = apiPage(path);
        if (api !== undefined) {
          token.attrSet("href", `${base}${api}`);
          // Not a page of VitePress's router.
          token.attrSet("target", "_self");
        } else if (repository === undefined) {
          dropped.push(index);
          token.type = "text";
        } else {
          token.attrSet("href", `${repository}/blob/main/${path}`);
        }
      }
    }
  });
}
