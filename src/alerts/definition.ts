// What an alert is given as, and the check that nothing wrong gets any further.
import { requireOptions } from "../core/arguments.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { requireNumber, requireOneOf, requireSeconds, requireStrings, requireText } from "./checks.ts";
import { type AlertComparison, COMPARISON_IDS } from "./comparison.ts";
import { requireAddress } from "./email-address.ts";
import { type AlertMetric, METRIC_IDS } from "./metric.ts";
import { requireWebhookAddress, type WebhookAddress } from "./webhook-address.ts";

/** When an alert fires. */
export interface AlertTerms {
  /** Any text that tells it from the others, up to 256 characters. */
  readonly name: string;
  readonly metric: AlertMetric;
  /** In the metric's own unit: fractions 0 to 1, times in seconds, `circuit_breaker_open` 1 or 0. */
  readonly threshold: number;
  readonly comparison: AlertComparison;
  /** Seconds the condition must have been seen to hold. Default: 0, it fires at the first look. */
  readonly for?: number;
  /** Seconds after which a firing alert is told again; Infinity for never. Default: that of the manager. */
  readonly repeatInterval?: number;
}

interface WebhookDestinations {
  /** One or several http or https addresses; `user:password@` becomes basic authentication. */
  readonly webhookUrl: string | readonly string[];
}

interface EmailDestinations {
  /** One message goes to all of them; needs `smtp` in the manager's options. */
  readonly emailRecipients: string | readonly string[];
}

/** An alert: when it fires and who is told. At least one destination. */
export type AlertDefinition = AlertTerms &
  ((WebhookDestinations & Partial<EmailDestinations>) | (EmailDestinations & Partial<WebhookDestinations>));

const FIELDS: readonly (keyof (AlertTerms & WebhookDestinations & EmailDestinations))[] = [
  "name",
  "metric",
  "threshold",
  "comparison",
  "for",
  "repeatInterval",
  "webhookUrl",
  "emailRecipients",
];

/** A definition that was found right. */
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

const LONGEST_NAME = 256;

/** Throws ConfigError. */
export function checkAlert(definition: AlertDefinition, repeatMs: number): CheckedAlert {
  requireOptions(definition, FIELDS);
  const { webhookUrl, emailRecipients } = definition;
  const name = requireText("name", definition.name, LONGEST_NAME);
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
  const message = `the alert ${describeArrival(name)} has nobody to tell`;
  return new ConfigError("CONFIG_INVALID", message, { hint: "Give webhookUrl, emailRecipients or both." });
}
