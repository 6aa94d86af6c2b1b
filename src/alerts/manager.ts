// class AlertManager: watches a cache's metrics and notifies webhooks and people when one crosses a threshold.
import { type ReportedAlert, reportAlerts } from "../core/alert-state.ts";
import { requireOptions } from "../core/arguments.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Duration } from "../core/duration.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactError } from "../core/redact.ts";
import { requireSeconds } from "./checks.ts";
import { wordsOf } from "./condition.ts";
import { type AlertDefinition, type CheckedAlert, checkAlert } from "./definition.ts";
import { Delivery, type DeliveryCounts, type DeliveryHost } from "./delivery.ts";
import { type Destination, LazyDestination } from "./destination.ts";
import { loadMailer, type Mailer } from "./mailer.ts";
import { AlertMonitor, type AlertState } from "./monitor.ts";
import {
  type AlertManagerOptions,
  type CheckedOptions,
  requireManagerOptions,
  requireSource,
} from "./options.ts";
import { type AlertPattern, alertPatterns, type PatternOptions } from "./patterns.ts";
import type { MetricsSource } from "./snapshot.ts";

/** Delivery totals, and how many messages are still undelivered. */
export type AlertDeliveries = Readonly<DeliveryCounts> & { readonly pending: number };

export interface StopOptions {
  /** How long to wait for deliveries in flight. Default: 10 seconds. */
  readonly timeout?: Duration;
}

const DEFAULT_STOP_SECONDS = 10;

/**
 * Checks a cache every `interval` seconds. An alert is sent when its condition begins to hold, again after every
 * `repeatInterval`, and once more when it is resolved. Retries never delay the next check. Only a delivery in flight keeps
 * the process alive.
 *
 * @example
 * ```ts
 * const alerts = new AlertManager(cache);
 * for (const pattern of alerts.patterns()) {
 *   alerts.addAlert({ ...pattern, webhookUrl: "https://hooks.example.com/cache" });
 * }
 * alerts.start();
 * ```
 */
export class AlertManager implements AsyncDisposable {
  readonly #source: MetricsSource;
  readonly #options: CheckedOptions;
  readonly #clock: Clock;
  readonly #alerts = new Map<string, CheckedAlert>();
  readonly #counts: DeliveryCounts = { delivered: 0, failedAttempts: 0, abandoned: 0, superseded: 0 };
  #mailer: Mailer | undefined;
  #monitor: AlertMonitor | undefined;
  /** Ends the report of the states with the cache's own. */
  #withdraw: (() => void) | undefined;

  /** Throws ConfigError. `clock` is for tests. */
  constructor(cache: MetricsSource, options: AlertManagerOptions = {}, clock: Clock = systemClock) {
    this.#source = requireSource(cache);
    this.#options = requireManagerOptions(options);
    this.#clock = clock;
  }

  /**
   * Adds an alert, effective at once if started. Throws ConfigError for an invalid definition, and MissingPeerError if it
   * has recipients and `nodemailer` is not installed; nothing is added then.
   */
  addAlert(definition: AlertDefinition): void {
    const alert = checkAlert(definition, this.#options.repeatMs);
    if (this.#alerts.has(alert.name)) {
      const message = `there is already an alert named ${describeArrival(alert.name)}`;
      throw new ConfigError("CONFIG_INVALID", message, {
        operation: "addAlert",
        hint: "Give it another name.",
      });
    }
    if (alert.recipients.length > 0) this.#prepareMail();
    this.#alerts.set(alert.name, alert);
    this.#monitor?.add(alert);
  }

  /** Starts checking; the first check is after one interval. Idempotent. */
  start(): void {
    this.#withdraw ??= reportAlerts(this.#source, () => this.#reported());
    this.#monitor ??= new AlertMonitor(this.#source, this.#alerts.values(), {
      clock: this.#clock,
      intervalMs: this.#options.intervalMs,
      instance: this.#options.instance,
      deliveriesOf: (alert) => this.#deliveriesOf(alert),
      report: (error) => this.#report(error),
    });
  }

  /**
   * Stops checking, and resolves when deliveries in flight have ended, at the latest after `timeout`. Messages waiting for
   * a retry are abandoned. After another start(), conditions that still hold fire again. Idempotent.
   */
  async stop({ timeout = DEFAULT_STOP_SECONDS, ...unknown }: StopOptions = {}): Promise<void> {
    requireOptions(unknown, ["timeout"]);
    const limitMs = requireSeconds("timeout", timeout, { least: 0 });
    const monitor = this.#monitor;
    this.#monitor = undefined;
    this.#withdraw?.();
    this.#withdraw = undefined;
    await monitor?.close(limitMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Nine ready-made alerts that suit most systems, and one for a database feed on request; add a destination: `addAlert({ ...pattern, webhookUrl })`. */
  patterns(options: PatternOptions = {}): readonly AlertPattern[] {
    return alertPatterns(options);
  }

  /** The state of every alert; empty unless started. */
  states(): readonly AlertState[] {
    return this.#monitor?.states ?? [];
  }

  deliveries(): AlertDeliveries {
    return { ...this.#counts, pending: this.#monitor?.pending ?? 0 };
  }

  #prepareMail(): void {
    if (this.#options.smtp === undefined) {
      throw new ConfigError(
        "CONFIG_INVALID",
        "emailRecipients needs a mail server, but the manager has none",
        {
          operation: "addAlert",
          hint: "Pass smtp: { host, from } to new AlertManager().",
        },
      );
    }
    this.#mailer ??= loadMailer();
  }

  #deliveriesOf(alert: CheckedAlert): readonly Delivery[] {
    const { attemptMs } = this.#options;
    const host: DeliveryHost = {
      clock: this.#clock,
      counts: this.#counts,
      attemptMs,
      report: (error) => this.#report(error),
    };
    return this.#destinationsOf(alert).map((destination) => new Delivery(destination, host));
  }

  #destinationsOf({ webhooks, recipients }: CheckedAlert): readonly Destination[] {
    const { webhookKeys, smtp } = this.#options;
    const mailer = this.#mailer;
    const destinations = webhooks.map(
      (address) =>
        new LazyDestination(address.label, async () => {
          const { WebhookDestination } = await import("./webhook.ts");
          return new WebhookDestination(address, webhookKeys, this.#clock);
        }),
    );
    if (recipients.length > 0 && smtp !== undefined && mailer !== undefined) {
      const load = async (): Promise<Destination> => {
        const { EmailDestination } = await import("./email.ts");
        return new EmailDestination(smtp, recipients, mailer);
      };
      destinations.push(new LazyDestination(`email through ${smtp.host}:${smtp.port}`, load));
    }
    return destinations;
  }

  #reported(): readonly ReportedAlert[] {
    return (this.#monitor?.states ?? []).flatMap(({ name, status, value, since }) => {
      const alert = this.#alerts.get(name);
      if (alert === undefined) return [];
      const held = alert.forMs > 0 ? ` for ${alert.forMs / 1_000} s` : "";
      return [
        {
          name,
          condition: `${alert.metric} ${wordsOf(alert.comparison)} ${alert.threshold}${held}`,
          status,
          ...(value !== undefined && { value }),
          ...(since !== undefined && { since }),
          destinations: [
            ...(alert.webhooks.length > 0 ? ["webhook"] : []),
            ...(alert.recipients.length > 0 ? ["email"] : []),
          ],
        },
      ];
    });
  }

  #report(error: Error): void {
    try {
      const result: unknown = this.#options.onError(redactError(error));
      if (result instanceof Promise) result.catch(() => {});
    } catch {
      // An error handler that throws has nowhere left to report to.
    }
  }
}
