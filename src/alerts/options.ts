// The options of an alert manager, and their validation.
import { requireOptions } from "../core/arguments.ts";
import type { Duration } from "../core/duration.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { nodeOs } from "../core/lazy-builtin.ts";
import { refusal, requireSeconds, requireText } from "./checks.ts";
import { requireRepeat } from "./definition.ts";
import { requireSecrets } from "./signature.ts";
import { type CheckedSmtp, requireSmtp, type SmtpOptions } from "./smtp.ts";
import type { MetricsSource } from "./snapshot.ts";

export interface AlertManagerOptions {
  /** Time between two checks of the cache. Default: 30 seconds. */
  readonly interval?: Duration;
  /** The mail server for alerts with `emailRecipients`. */
  readonly smtp?: SmtpOptions;
  /**
   * Signs webhooks: `whsec_` and 24 to 64 random bytes in base64. Several during key rotation. Without it webhooks are not
   * signed.
   */
  readonly webhookSecret?: string | readonly string[];
  /** Time after which a firing alert is sent again; Infinity: never. Default: four hours. */
  readonly repeatInterval?: Duration;
  /** How long one delivery attempt may take. Default: 30 seconds. */
  readonly deliveryTimeout?: Duration;
  /** The name of this process in messages. Default: the host name. */
  readonly instance?: string;
  /** Called for every failed attempt, and when the cache's metrics cannot be read. Default: emits a process warning. */
  readonly onError?: (error: Error) => void;
}

const FIELDS: readonly (keyof AlertManagerOptions)[] = [
  "interval",
  "smtp",
  "webhookSecret",
  "repeatInterval",
  "deliveryTimeout",
  "instance",
  "onError",
];

export interface CheckedOptions {
  readonly intervalMs: number;
  readonly smtp: CheckedSmtp | undefined;
  readonly webhookKeys: readonly Buffer[];
  readonly repeatMs: number;
  readonly attemptMs: number;
  readonly instance: string;
  readonly onError: (error: Error) => void;
}

const SHORTEST_SECONDS = 0.001;
const LONGEST_INSTANCE = 256;
const DEFAULT_REPEAT_MS = 14_400_000;

export function requireManagerOptions(options: AlertManagerOptions): CheckedOptions {
  requireOptions(options, FIELDS);
  const { interval = 30, deliveryTimeout = 30, instance = nodeOs().hostname(), onError = warn } = options;
  if (typeof onError !== "function") throw refusal("onError", "a function", describeArrival(onError));
  return {
    intervalMs: requireSeconds("interval", interval, { least: SHORTEST_SECONDS }),
    smtp: options.smtp === undefined ? undefined : requireSmtp(options.smtp),
    webhookKeys: options.webhookSecret === undefined ? [] : requireSecrets(options.webhookSecret),
    repeatMs: requireRepeat(options.repeatInterval, DEFAULT_REPEAT_MS),
    attemptMs: requireSeconds("deliveryTimeout", deliveryTimeout, { least: SHORTEST_SECONDS }),
    instance: requireText("instance", instance, LONGEST_INSTANCE),
    onError,
  };
}

export function requireSource(cache: unknown): MetricsSource {
  const isSource =
    typeof cache === "object" &&
    cache !== null &&
    typeof (cache as Partial<MetricsSource>).getComprehensiveMetrics === "function";
  if (isSource) return cache as MetricsSource;
  const message = `cache must be an XCache, got ${describeArrival(cache)}`;
  throw new ConfigError("ARGUMENT_INVALID", message, { operation: "AlertManager" });
}

/** An undelivered alert must not go unnoticed. */
function warn(error: Error): void {
  process.emitWarning(error.message, "XCacheWarning");
}
