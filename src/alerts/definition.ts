// The definition of an alert, and its validation.
import { requireOptions } from "../core/arguments.ts";
import type { Duration } from "../core/duration.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { requireNumber, requireOneOf, requireSeconds, requireStrings, requireText } from "./checks.ts";
import { type AlertComparison, COMPARISON_IDS } from "./condition.ts";
import { requireAddress } from "./email-address.ts";
import { type AlertMetric, METRIC_IDS } from "./metric.ts";
import { requireWebhookAddress, type WebhookAddress } from "./webhook-address.ts";

/** When an alert fires. */
export interface AlertRule {
  /** Unique, up to 256 characters. */
  readonly name: string;
  readonly metric: AlertMetric;
  /** In the metric's own unit: fractions 0 to 1, times in seconds, `circuit_breaker_open` 1 or 0. */
  readonly threshold: number;
  readonly comparison: AlertComparison;
  /** How long the condition must hold before the alert fires. Default: 0, at the first check. */
  readonly for?: Duration;
  /** Time after which a firing alert is sent again; Infinity: never. Default: the manager's. */
  readonly repeatInterval?: Duration;
}

interface WebhookDestinations {
  /** One or more http or https URLs; `user:password@` becomes basic authentication. */
  readonly webhookUrl: string | readonly string[];
}

interface EmailDestinations {
  /** All of them get one message; needs `smtp` in the manager's options. */
  readonly emailRecipients: string | readonly string[];
}

/** When an alert fires and whom it notifies. At least one destination is required. */
export type AlertDefinition = AlertRule &
  ((WebhookDestinations & Partial<EmailDestinations>) | (EmailDestinations & Partial<WebhookDestinations>));

const FIELDS: readonly (keyof (AlertRule & WebhookDestinations & EmailDestinations))[] = [
  "name",
  "metric",
  "threshold",
  "comparison",
  "for",
  "repeatInterval",
  "webhookUrl",
  "emailRecipients",
];

/** A validated definition. */
export interface CheckedAlert {
  readonly name: string;
  readonly metric: AlertMetric;
  readonly threshold: number;
  readonly comparison: AlertComparison;
  readonly forMs: number;
  readonly repeatMs: number;
  readonly webhooks: readonly WebhookAddress[];
  readonly recipients: readonly string[];
}

const MAX_NAME_LENGTH = 256;

/** Throws ConfigError. */
export function checkAlert(definition: AlertDefinition, repeatMs: number): CheckedAlert {
  requireOptions(definition, FIELDS);
  const { webhookUrl, emailRecipients } = definition;
  const name = requireText("name", definition.name, MAX_NAME_LENGTH);
  const metric = requireOneOf("metric", METRIC_IDS, definition.metric);
  const comparison = requireOneOf("comparison", COMPARISON_IDS, definition.comparison);
  if (webhookUrl === undefined && emailRecipients === undefined) throw noDestination(name);
  return {
    name,
    metric,
    threshold: requireNumber("threshold", definition.threshold),
    comparison,
    forMs: definition.for === undefined ? 0 : requireSeconds("for", definition.for, { least: 0 }),
    repeatMs: requireRepeat(definition.repeatInterval, repeatMs),
    webhooks:
      webhookUrl === undefined ? [] : requireStrings("webhookUrl", webhookUrl).map(requireWebhookAddress),
    recipients: emailRecipients === undefined ? [] : requireRecipients(emailRecipients),
  };
}

/** In milliseconds. */
export const requireRepeat = (value: unknown, otherwise: number): number =>
  value === undefined ? otherwise : requireSeconds("repeatInterval", value, { least: 1, orNever: true });

function requireRecipients(value: unknown): readonly string[] {
  const addresses = requireStrings("emailRecipients", value).map((each) =>
    requireAddress("emailRecipients", each),
  );
  return [...new Set(addresses)];
}

function noDestination(name: string): ConfigError {
  const message = `the alert ${describeArrival(name)} has no destination`;
  return new ConfigError("CONFIG_INVALID", message, { hint: "Set webhookUrl, emailRecipients or both." });
}
