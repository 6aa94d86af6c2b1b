// The sidebar of the site, in reading order. A test checks that it lists every page.
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
    consistency: "Consistency guarantees",
    benchmarks: "Benchmarks",
    comparison: "Comparison",
  }),
  group("Cache", "guide", {
    cache: "The cache object",
    functions: "Cached functions",
    loading: "Loading",
    invalidation: "Invalidation",
    "near-cache": "Near tier (L1)",
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
  group("Integrations", "guide", {
    http: "HTTP responses",
    databases: "Databases",
    "database-libraries": "Database libraries",
    feed: "Database change feed",
    ecosystem: "Other cache libraries",
    extras: "Optional packages",
    testing: "Testing",
  }),
  group("Observability", "guide", {
    dashboard: "Dashboard",
    metrics: "Metrics and traces",
    health: "Health checks",
    alerts: "Alerts",
    cli: "Command line",
  }),
  group("Operations", "operations", {
    sizing: "Sizing",
    redis: "Redis settings",
    failover: "Cluster and failover",
    upgrade: "Upgrading",
    security: "Security",
  }),
  group("Migrating from", "migration", {
    "cache-manager": "cache-manager and Keyv",
    bentocache: "BentoCache",
    "lru-cache": "lru-cache",
    "redis-clients": "node-redis and ioredis",
    "node-cache": "node-cache",
    apicache: "apicache",
    python: "the Python library",
  }),
  group("Reference", "reference", {
    api: "API",
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
