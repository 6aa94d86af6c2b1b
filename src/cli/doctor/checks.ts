// What doctor looks at, and what it thinks of it.
import { systemClock } from "../../core/clock.ts";
import { peerRanges } from "../../core/package-manager.ts";
import { VERSION } from "../../version.ts";
import { failureOf } from "../failure.ts";
import type { Session } from "../session.ts";
import { latencyText } from "../terminal/format-duration.ts";
import { bytesText } from "../terminal/format-number.ts";
import { EXTRA_NAMES, EXTRAS } from "./extras.ts";
import { installedVersion } from "./installed-package.ts";
import { readServerInfo, type ServerInfo } from "./server-info.ts";

export interface Finding {
  readonly name: string;
  readonly state: "ok" | "warning" | "problem";
  readonly detail: string;
  /** What to do; null where nothing has to be done. */
  readonly advice: string | null;
}

export interface CheckResult {
  readonly findings: readonly Finding[];
  readonly isReached: boolean;
}

const ok = (name: string, detail: string): Finding => ({ name, state: "ok", detail, advice: null });
const warning = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: "warning",
  detail,
  advice,
});
const problem = (name: string, detail: string, advice: string): Finding => ({
  name,
  state: "problem",
  detail,
  advice,
});

export async function runChecks(session: Session): Promise<CheckResult> {
  const program = ok(
    "program",
    `xcache ${VERSION} on Node ${process.versions.node}, ${process.platform} ${process.arch}`,
  );
  try {
    await session.cache.connect();
    const facts = await readServerInfo(session);
    const { isHealthy, latencySeconds, error } = await session.cache.healthCheck();
    if (!isHealthy) throw error;
    const connection = ok("connection", `${session.address} answered in ${latencyText(latencySeconds)}`);
    return {
      findings: [
        program,
        connection,
        ...aboutServer(facts),
        ...aboutClock(session, facts),
        ...aboutPackages(),
      ],
      isReached: true,
    };
  } catch (error) {
    const usesDefault = session.settings.sources.kvUrl === "default";
    const { message, hint } = failureOf(error, usesDefault);
    return {
      findings: [program, problem("connection", message, hint), ...aboutPackages()],
      isReached: false,
    };
  }
}

function aboutServer(facts: ServerInfo): readonly Finding[] {
  const { all, title, backend } = facts;
  const findings = [backend === "memory" ? aboutMemory() : ok("store", title)];
  if (typeof all.tracking === "boolean") findings.push(aboutTracking(all.tracking));
  if (typeof all.evictionPolicy === "string") findings.push(aboutEviction(all.evictionPolicy, all));
  if (typeof all.usedBytes === "number" && typeof all.maxBytes === "number") {
    findings.push(ok("room", `${bytesText(all.usedBytes)} of ${bytesText(all.maxBytes)} in use`));
  }
  if (typeof all.serversUp === "number" && typeof all.servers === "number") {
    const detail = `${all.serversUp} of ${all.servers} answer`;
    const isWhole = all.serversUp === all.servers;
    findings.push(
      isWhole
        ? ok("servers", detail)
        : problem("servers", detail, "Start the others: their keys are misses meanwhile."),
    );
  }
  return findings;
}

const aboutMemory = (): Finding =>
  warning(
    "store",
    "memory:// lives in the process that opens it, so this command sees an empty one",
    "Name the store that your application shares, with --kv-url.",
  );

function aboutTracking(isOn: boolean): Finding {
  if (isOn) return ok("tracking", "the server tells of changes, so that entries may be kept near");
  return warning(
    "tracking",
    "the server does not tell of changes: nothing is kept near, and every read asks for its tags too",
    "Use Redis 6 or later, or allow the user CLIENT TRACKING (see docs/guide/kv.md).",
  );
}

function aboutEviction(policy: string, { maxMemoryBytes, usedMemoryBytes }: ServerInfo["all"]): Finding {
  const most = typeof maxMemoryBytes === "number" ? maxMemoryBytes : 0;
  const used = typeof usedMemoryBytes === "number" ? usedMemoryBytes : 0;
  const room =
    most > 0 ? `${bytesText(used)} of ${bytesText(most)}` : `${bytesText(used)} in use, no maxmemory`;
  const detail = `${policy}, ${room}`;
  if (policy.startsWith("allkeys-")) return ok("eviction", detail);
  if (most === 0) {
    return warning(
      "eviction",
      detail,
      "Set maxmemory and maxmemory-policy allkeys-lru, so that a full server drops the oldest.",
    );
  }
  if (policy === "noeviction") {
    return problem(
      "eviction",
      detail,
      "Once it is full every write fails: set maxmemory-policy allkeys-lru or allkeys-lfu.",
    );
  }
  return warning(
    "eviction",
    detail,
    "Entries that never expire are not evicted under a volatile policy; allkeys-lru drops any.",
  );
}

const LARGEST_SKEW_MS = 1_000;

/** The store's time by its own clock, ours by the calendar. */
function aboutClock({ store, clock }: Session, { backend }: ServerInfo): readonly Finding[] {
  if (backend !== "kv") return [];
  const skewMs = store.backend.now() - (clock.wall?.() ?? systemClock.now());
  const detail = `the server's clock is ${latencyText(Math.abs(skewMs) / 1_000)} ${skewMs < 0 ? "behind" : "ahead"}`;
  if (Math.abs(skewMs) <= LARGEST_SKEW_MS) return [ok("clock", detail)];
  return [
    warning(
      "clock",
      detail,
      "Entries expire by the server's clock, so this is safe; set both by NTP to compare logs.",
    ),
  ];
}

/** Only packages of a feature are worth a line: nobody needs all of them. */
function aboutPackages(): readonly Finding[] {
  const ranges = peerRanges();
  return Object.keys(ranges)
    .toSorted()
    .map((name) => {
      const version = installedVersion(name);
      const extra = EXTRA_NAMES.filter((each) => each !== "full").find((each) =>
        (EXTRAS[each] as readonly string[]).includes(name),
      );
      const way = extra === undefined ? "" : ` (xcache extras ${extra})`;
      return ok(`package ${name}`, version ?? `not installed, optional${way}`);
    });
}
