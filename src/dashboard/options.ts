// The options of the dashboard, and their validation.
import type { AlertManager } from "../alerts/manager.ts";
import { type CacheInside, insideOf } from "../cache/inside.ts";
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { XCache } from "../xcache.ts";

/** What a visitor may do, within what the dashboard allows at all. */
export interface Permission {
  /** Default: what the dashboard allows. */
  readonly writes?: boolean;
  readonly values?: boolean;
  /** Named in the audit trail. */
  readonly user?: string;
}

export interface RequestInfo {
  /** Asks for the page itself, which holds no data. */
  readonly isPage: boolean;
  /** The request or context of the framework; the Request itself behind `fetch`. */
  readonly native: unknown;
}

/** Something that was changed, or was to be. */
export interface DashboardAction {
  readonly action: "delete" | "invalidate";
  /** The key that was deleted. */
  readonly key?: string;
  /** The tag that was invalidated. */
  readonly tag?: string;
  readonly user?: string;
  /** False: refused, because writes are not allowed. */
  readonly allowed: boolean;
}

export interface DashboardOptions {
  readonly cache: XCache;
  /** Shows their deliveries. The states of all processes are shown anyway. */
  readonly alerts?: AlertManager;
  /** Who may look: false refuses. Required, since keys alone say much about an application. */
  readonly authorize: (
    request: Request,
    info: RequestInfo,
  ) => boolean | Permission | Promise<boolean | Permission>;
  /** Whether values can be looked at. Default: false. */
  readonly values?: boolean;
  /** Whether entries can be deleted and tags invalidated. Default: false. */
  readonly writes?: boolean;
  /** Parts of values to hide, besides those that are named like secrets. Default: none. */
  readonly redact?: (path: readonly string[], value: unknown) => boolean;
  /** The values of `Host` that are served, such as `admin.example.com`. Default: any. */
  readonly hosts?: readonly string[];
  /** Called before an action, also a refused one. If it throws or rejects, the action is not carried out. */
  readonly onAction?: (action: DashboardAction) => void | Promise<void>;
}

export interface CheckedOptions
  extends Required<
    Pick<DashboardOptions, "cache" | "authorize" | "values" | "writes" | "redact" | "onAction">
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
  const { cache, alerts, authorize, redact, hosts, onAction } = options;
  const inside = typeof cache === "object" && cache !== null ? insideOf(cache) : undefined;
  if (inside === undefined) throw wrong("cache must be an XCache", cache);
  if (typeof authorize !== "function") {
    throw wrong(
      "authorize must be a function",
      authorize,
      "Pass authorize: (request) => ... that returns whether this visitor may look.",
    );
  }
  for (const [name, value] of Object.entries({ redact, onAction })) {
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
  };
}
