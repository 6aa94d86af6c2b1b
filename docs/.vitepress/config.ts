// The site made of docs/: `npm run docs`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitepress";
import { linkToRepository, repositoryUrl, slugOf } from "./links.ts";
import { llmsText } from "./llms.ts";
import { sidebar } from "./sidebar.ts";

const repository = repositoryUrl();
const base = process.env.DOCS_BASE ?? "/";

// biome-ignore lint/style/noDefaultExport: VitePress asks for it
export default defineConfig({
  title: "xcache",
  description:
    "Async caching for Node.js: a thousand concurrent callers run your function once, and invalidated data never comes back.",
  lang: "en",
  base,
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${base}logo.svg` }]],
  markdown: {
    anchor: { slugify: slugOf },
    config: (md) => linkToRepository(md, repository, base),
  },
  themeConfig: {
    logo: "/logo.svg",
    nav: [
      {
        text: "Guide",
        link: "/guide/getting-started",
        activeMatch: "/(guide/(?!benchmarks)|operations/|migration/)",
      },
      { text: "Benchmarks", link: "/guide/benchmarks" },
      { text: "Reference", link: "/reference/configuration", activeMatch: "/reference/" },
      // Made by typedoc behind VitePress, so it is no page of its router.
      { text: "API", link: "/api/index.html", target: "_self" },
    ],
    sidebar: sidebar.map(({ items, ...group }) => ({ ...group, items: [...items] })),
    outline: { level: [2, 3] },
    search: { provider: "local" },
    ...(repository !== undefined && { socialLinks: [{ icon: "github" as const, link: repository }] }),
  },
  buildEnd: ({ outDir }) => writeFileSync(join(outDir, "llms.txt"), llmsText(base)),
});
