// class AlertManager: watches a cache's figures and tells webhooks and people when one crosses its threshold.
import { requireOptions } from "../core/arguments.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { redactError } from "../core/redact.ts";
import { requireSeconds } from "./checks.ts";
import { type AlertDefinition, type CheckedAlert, checkAlert } from "./definition.ts";
import { Delivery, type DeliveryCounts, type DeliveryHost } from "./delivery.ts";
import { EmailDestination } from "./email.ts";
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
import { WebhookDestination } from "./webhook.ts";

/** How deliveries have gone, and how many messages are still on their way. */
export type AlertDeliveries = Readonly<DeliveryCounts> & { readonly pending: number };

export interface StopOptions {
  /** Seconds to wait for deliveries in flight. Default: 10. */
  readonly timeout?: number;
}

const DEFAULT_STOP_SECONDS = 10;

/**
 * Looks at a cache every `interval` seconds. An alert is told when its condition begins to hold, again after
 * `repeatInterval`, and once more when it is over. Deliveries are retried without holding up the next look. Nothing of it
 * keeps Node alive but a delivery in flight.
 */
export class AlertManager implements AsyncDisposable {
  readonly #source: MetricsSource;
  readonly #options: CheckedOptions;
  readonly #clock: Clock;
  readonly #alerts = new Map<string, CheckedAlert>();
  readonly #counts: DeliveryCounts = { delivered: 0, failedAttempts: 0, abandoned: 0, superseded: 0 };
  #mailer: Mailer | undefined;
  #watch: AlertMonitor | undefined;

  /** Throws ConfigError. `clock` is for tests. */
  constructor(cache: MetricsSource, options: AlertManagerOptions = {}, clock: Clock = systemClock) {
    this.#source = requireSource(cache);
    this.#options = requireManagerOptions(options);
    this.#clock = clock;
  }

  /**
   * Watches for one more situation, at once if started. Throws ConfigError for a definition that is not right, and
   * MissingPeerError when it has recipients and `nodemailer` is not installed; then nothing is added.
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
    this.#watch?.add(alert);
  }

  /** Begins to look, the first time after one interval. Idempotent. */
  start(): void {
    this.#watch ??= new AlertMonitor(this.#source, this.#alerts.values(), {
      clock: this.#clock,
      intervalMs: this.#options.intervalMs,
      instance: this.#options.instance,
      channelsOf: (alert) => this.#channelsOf(alert),
      report: (error) => this.#report(error),
    });
  }

  /**
   * Looks no more, and resolves when what is in flight was delivered or has failed, at the latest after `timeout`. What
   * waits for another attempt is given up. A later start() begins anew: what is still wrong then fires again. Idempotent.
   */
  async stop({ timeout = DEFAULT_STOP_SECONDS, ...unknown }: StopOptions = {}): Promise<void> {
    requireOptions(unknown, ["timeout"]);
    const limitMs = requireSeconds("timeout", timeout, { least: 0 });
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close(limitMs);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** The nine situations worth an alert in most systems; add a destination: `addAlert({ ...pattern, webhookUrl })`. */
  patterns(options: PatternOptions = {}): readonly AlertPattern[] {
    return alertPatterns(options);
  }

  /** How every alert stands; empty unless started. */
  states(): readonly AlertState[] {
    return this.#watch?.states ?? [];
  }

  deliveries(): AlertDeliveries {
    return { ...this.#counts, pending: this.#watch?.pending ?? 0 };
  }

  #prepareMail(): void {
    if (this.#options.smtp === undefined) {
      throw new ConfigError(
        "CONFIG_INVALID",
        "emailRecipients needs a mail server, and the manager has none",
        {
          operation: "addAlert",
          hint: "Pass smtp: { host, from } to new AlertManager().",
        },
      );
    }
    this.#mailer ??= loadMailer();
  }

  #channelsOf({ webhooks, recipients }: CheckedAlert): readonly Delivery[] {
    const { webhookKeys, smtp, attemptMs } = this.#options;
    const host: DeliveryHost = {
      clock: this.#clock,
      counts: this.#counts,
      attemptMs,
      report: (error) => this.#report(error),
    };
    const channels = webhooks.map(
      (address) => new Delivery(new WebhookDestination(address, webhookKeys, this.#clock), host),
    );
    if (recipients.length > 0 && smtp !== undefined && this.#mailer !== undefined) {
      channels.push(new Delivery(new EmailDestination(smtp, recipients, this.#mailer), host));
    }
    return channels;
  }

  #report(error: Error): void {
    try {
      const result: unknown = this.#options.onError(redactError(error));
      if (result instanceof Promise) result.catch(() => {});
    } catch {
      // Whoever listens for errors is told of them; there is nobody left to tell of its own.
    }
  }
}
