// What stands in the sidebar of the site, in the order of reading. A test holds it to the pages that there are.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SidebarItem {
  readonly text: string;
  readonly link: string;
}

export interface SidebarGroup {
  readonly text: string;
  readonly items: readonly SidebarItem[];
  readonly collapsed?: boolean;
}

const DOCS = join(import.meta.dirname, "..");

function group(text: string, folder: string, pages: Readonly<Record<string, string>>): SidebarGroup {
  const items = Object.entries(pages).map(([page, title]) => ({ text: title, link: `/${folder}/${page}` }));
  return { text, items };
}

/** One line a decision, by its heading. */
function decisions(): SidebarGroup {
  const pages = readdirSync(join(DOCS, "decisions")).filter((name) => /^\d{4}-.*\.md$/.test(name));
  const items = pages.sort().map((name) => {
    const heading = readFileSync(join(DOCS, "decisions", name), "utf8").split("\n", 1)[0] ?? name;
    return { text: heading.replace(/^#\s+/, ""), link: `/decisions/${name.replace(/\.md$/, "")}` };
  });
  return {
    text: "Decisions",
    items: [{ text: "All", link: "/decisions/README" }, ...items],
    collapsed: true,
  };
}

export const sidebar: readonly SidebarGroup[] = [
  group("Start", "guide", {
    "getting-started": "Getting started",
    "choosing-a-store": "Choosing a store",
    consistency: "What you can rely on",
    comparison: "Other caches",
  }),
  group("Cache", "guide", {
    cache: "The cache object",
    functions: "Functions",
    loading: "Loading",
    invalidation: "Invalidation",
    "near-cache": "The near tier",
    encryption: "Encryption",
    fuzzy: "Fuzzy search",
    vector: "Semantic cache",
  }),
  group("Stores", "guide", {
    memory: "Memory",
    kv: "Redis and Valkey",
    memcached: "Memcached",
    disk: "Disk",
  }),
  group("Around your application", "guide", {
    http: "HTTP responses",
    databases: "Databases",
    feed: "Changes from the database",
    ecosystem: "Other libraries",
    extras: "Optional packages",
    testing: "Testing",
  }),
  group("Observability", "guide", {
    dashboard: "Dashboard",
    metrics: "Metrics and traces",
    health: "Health",
    alerts: "Alerts",
    cli: "The command line",
  }),
  group("Operations", "operations", {
    sizing: "Sizing",
    redis: "Redis settings",
    failover: "Cluster and failover",
    upgrade: "Upgrading",
    security: "Security",
  }),
  group("Moving from", "migration", {
    "cache-manager": "cache-manager and Keyv",
    "node-cache": "node-cache",
    apicache: "apicache",
    python: "the Python library",
  }),
  group("Reference", "reference", {
    architecture: "Architecture",
    configuration: "Configuration",
    errors: "Errors",
    limits: "Limits",
    metrics: "Metrics",
    cli: "Command line",
    "http-options": "HTTP options",
    "http-conformance": "HTTP conformance",
  }),
  decisions(),
];
