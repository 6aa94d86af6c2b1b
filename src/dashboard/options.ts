// The options of the dashboard.
import type { AlertManager } from "../alerts/manager.ts";
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

/** What became of an action. */
export interface DashboardResult extends DashboardAction {
  /** False: it was refused, or failed. */
  readonly ok: boolean;
  /** How many entries were deleted. */
  readonly deleted?: number;
  /** Why it was not carried out. A failed action may have taken effect nevertheless, if the store did not answer. */
  readonly error?: string;
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
  /** Called once after every action, also a refused or failed one. An error of it is a warning, and changes nothing. */
  readonly onResult?: (result: DashboardResult) => void | Promise<void>;
}
