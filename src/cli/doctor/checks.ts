// The checks of `xcache doctor`, the advice each gives, and how a finding is printed.
import { systemClock } from "../../core/clock.ts";
import { installedVersion, OLDEST_SUPPORTED } from "../../core/peer-versions.ts";
import { VERSION } from "../../version.ts";
import { failureOf } from "../failure.ts";
import type { Session } from "../session.ts";
import { escapeControls } from "../terminal/escape.ts";
import { latencyText } from "../terminal/format-duration.ts";
import { bytesText } from "../terminal/format-number.ts";
import type { Output } from "../terminal/output.ts";
import { EXTRA_NAMES, EXTRAS } from "./extras.ts";
import { readServerInfo, type ServerInfo } from "./server-info.ts";

export interface Finding {
  readonly name: string;
  readonly state: "ok" | "warning" | "problem";
  readonly detail: string;
  /** What to do; null if nothing is needed. */
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
    const info = await readServerInfo(session);
    const { isHealthy, latencySeconds, error } = await session.cache.healthCheck();
    if (!isHealthy) throw error;
    const connection = ok("connection", `${session.address} answered in ${latencyText(latencySeconds)}`);
    return {
      findings: [program, connection, ...checkServer(info), ...checkClock(session, info), ...checkPackages()],
      isReached: true,
    };
  } catch (error) {
    const usesDefault = session.settings.sources.kvUrl === "default";
    const { message, hint } = failureOf(error, usesDefault);
    return {
      findings: [program, problem("connection", message, hint), ...checkPackages()],
      isReached: false,
    };
  }
}

function checkServer({ all, title, backend }: ServerInfo): readonly Finding[] {
  const findings = [backend === "memory" ? memoryFinding() : ok("store", title)];
  if (typeof all.tracking === "boolean") findings.push(checkTracking(all.tracking));
  if (typeof all.evictionPolicy === "string") findings.push(checkEviction(all.evictionPolicy, all));
  if (typeof all.usedBytes === "number" && typeof all.maxBytes === "number") {
    findings.push(ok("room", `${bytesText(all.usedBytes)} of ${bytesText(all.maxBytes)} in use`));
  }
  if (typeof all.serversUp === "number" && typeof all.servers === "number") {
    const detail = `${all.serversUp} of ${all.servers} answer`;
    const allUp = all.serversUp === all.servers;
    findings.push(
      allUp
        ? ok("servers", detail)
        : problem("servers", detail, "Start the others: until then their keys are misses."),
    );
  }
  return findings;
}

const memoryFinding = (): Finding =>
  warning(
    "store",
    "memory:// is private to each process, so this command sees an empty store",
    "Pass the address of your application's shared store with --kv-url.",
  );

function checkTracking(isOn: boolean): Finding {
  if (isOn) return ok("tracking", "the server pushes changes, so a near cache can be used");
  return warning(
    "tracking",
    "the server does not push changes: the near cache is off, and every read also fetches tag stamps",
    "Use Redis 6 or later, or allow the user to run CLIENT TRACKING (see docs/guide/kv.md).",
  );
}

function checkEviction(policy: string, { maxMemoryBytes, usedMemoryBytes }: ServerInfo["all"]): Finding {
  const limit = typeof maxMemoryBytes === "number" ? maxMemoryBytes : 0;
  const used = typeof usedMemoryBytes === "number" ? usedMemoryBytes : 0;
  const memory =
    limit > 0 ? `${bytesText(used)} of ${bytesText(limit)}` : `${bytesText(used)} in use, no maxmemory`;
  const detail = `${policy}, ${memory}`;
  if (policy.startsWith("allkeys-")) return ok("eviction", detail);
  if (limit === 0) {
    return warning(
      "eviction",
      detail,
      "Set maxmemory and maxmemory-policy allkeys-lru, so that a full server evicts the least recently used keys.",
    );
  }
  if (policy === "noeviction") {
    return problem(
      "eviction",
      detail,
      "Writes fail once it is full: set maxmemory-policy to allkeys-lru or allkeys-lfu.",
    );
  }
  return warning(
    "eviction",
    detail,
    "A volatile policy never evicts entries without expiry; allkeys-lru evicts any entry.",
  );
}

const LARGEST_SKEW_MS = 1_000;

/** Compares the server's clock with the wall clock of this machine. */
function checkClock({ store, clock }: Session, { backend }: ServerInfo): readonly Finding[] {
  if (backend !== "kv") return [];
  const skewMs = store.backend.now() - (clock.wall?.() ?? systemClock.now());
  const detail = `the server's clock is ${latencyText(Math.abs(skewMs) / 1_000)} ${skewMs < 0 ? "behind" : "ahead"}`;
  if (Math.abs(skewMs) <= LARGEST_SKEW_MS) return [ok("clock", detail)];
  return [
    warning(
      "clock",
      detail,
      "Entries expire by the server's clock, so this is safe; synchronize both with NTP to compare logs.",
    ),
  ];
}

/** Always ok: every package is optional. */
function checkPackages(): readonly Finding[] {
  return Object.keys(OLDEST_SUPPORTED)
    .toSorted()
    .map((name) => {
      const version = installedVersion(name);
      const extra = EXTRA_NAMES.filter((each) => each !== "full").find((each) =>
        (EXTRAS[each] as readonly string[]).includes(name),
      );
      const installHint = extra === undefined ? "" : ` (xcache extras ${extra})`;
      return ok(`package ${name}`, version ?? `not installed, optional${installHint}`);
    });
}

export function findingLines(out: Output, { state, name, detail, advice }: Finding): readonly string[] {
  const { green, yellow, red, cyan } = out.data;
  const mark = { ok: green("ok"), warning: yellow("warning"), problem: red("problem") }[state];
  const line = `  ${mark} ${name.replaceAll("_", " ")}: ${escapeControls(detail)}`;
  return advice === null ? [line] : [line, `      ${cyan("→")} ${escapeControls(advice)}`];
}
