// The site made of docs/: `npm run docs`.
import { defineConfig } from "vitepress";
import { linkToRepository, repositoryUrl, slugOf } from "./links.ts";
import { sidebar } from "./sidebar.ts";

const repository = repositoryUrl();

// biome-ignore lint/style/noDefaultExport: VitePress asks for it
export default defineConfig({
  title: "xcache",
  description: "Async caching for Node.js that stays correct under concurrency and failure.",
  lang: "en",
  base: process.env.DOCS_BASE ?? "/",
  markdown: {
    anchor: { slugify: slugOf },
    config: (md) => linkToRepository(md, repository),
  },
  themeConfig: {
    nav: [
      { text: "Guide", link: "/guide/getting-started", activeMatch: "/(guide|operations|migration)/" },
      { text: "Reference", link: "/reference/configuration", activeMatch: "/reference/" },
      // Made by typedoc behind VitePress, so it is no page of its router.
      { text: "API", link: "/api/index.html", target: "_self" },
    ],
    sidebar: sidebar.map(({ items, ...group }) => ({ ...group, items: [...items] })),
    outline: { level: [2, 3] },
    search: { provider: "local" },
    ...(repository !== undefined && { socialLinks: [{ icon: "github" as const, link: repository }] }),
  },
});
