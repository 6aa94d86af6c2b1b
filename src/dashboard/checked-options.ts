// Validates the options of the dashboard. Apart from them, so that their types reach no inside of a cache.
import type { AlertManager } from "../alerts/manager.ts";
import { type CacheInside, insideOf } from "../cache/inside.ts";
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { DashboardOptions } from "./options.ts";

export interface CheckedOptions
  extends Required<
    Pick<DashboardOptions, "cache" | "authorize" | "values" | "writes" | "redact" | "onAction" | "onResult">
  > {
  readonly alerts: AlertManager | undefined;
  readonly hosts: ReadonlySet<string> | undefined;
  readonly inside: CacheInside;
}

const NAMES: readonly (keyof DashboardOptions)[] = [
  "cache",
  "alerts",
  "authorize",
  "values",
  "writes",
  "redact",
  "hosts",
  "onAction",
  "onResult",
];

function wrong(expected: string, arrived: unknown, hint?: string): ConfigError {
  return new ConfigError("CONFIG_INVALID", `dashboard(): ${expected}, got ${describeArrival(arrived)}`, {
    operation: "dashboard",
    ...(hint !== undefined && { hint }),
  });
}

/** Throws ConfigError. */
export function requireDashboardOptions(options: DashboardOptions): CheckedOptions {
  requireOptions(options, NAMES);
  const { cache, alerts, authorize, redact, hosts, onAction, onResult } = options;
  const inside = typeof cache === "object" && cache !== null ? insideOf(cache) : undefined;
  if (inside === undefined) throw wrong("cache must be an XCache", cache);
  if (typeof authorize !== "function") {
    throw wrong(
      "authorize must be a function",
      authorize,
      "Pass authorize: (request) => ... that returns whether this visitor may look.",
    );
  }
  if (alerts !== undefined && typeof (alerts as Partial<AlertManager> | null)?.deliveries !== "function") {
    throw wrong("alerts must be an AlertManager", alerts);
  }
  for (const [name, value] of Object.entries({ redact, onAction, onResult })) {
    if (value !== undefined && typeof value !== "function") throw wrong(`${name} must be a function`, value);
  }
  if (hosts !== undefined && !(Array.isArray(hosts) && hosts.every((host) => typeof host === "string"))) {
    throw wrong("hosts must be a list of host names", hosts);
  }
  return {
    cache,
    alerts,
    authorize,
    inside,
    values: requireFlag(options.values, "values", false),
    writes: requireFlag(options.writes, "writes", false),
    redact: redact ?? (() => false),
    hosts: hosts && new Set(hosts.map((host) => host.toLowerCase())),
    onAction: onAction ?? (() => {}),
    onResult: onResult ?? (() => {}),
  };
}
