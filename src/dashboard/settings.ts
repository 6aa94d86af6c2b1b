// The settings as the dashboard and `xcache ui` show them.
import { resolveConfig } from "../config/resolve.ts";
import { type FieldName, fieldNames, wireName } from "../config/schema.ts";
import { redactUrl } from "../core/redact.ts";
import type { CheckedOptions } from "./checked-options.ts";

/** One row of the settings. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly origin: string;
}

/** The fields in force; what differs from the default comes from the code. */
export function configured(config: CheckedOptions["inside"]["root"]["config"]): readonly Setting[] {
  const defaults = resolveConfig({});
  return fieldNames().map((field) => ({
    name: wireName(field),
    value: settingText(field, config[field]),
    origin: JSON.stringify(config[field]) === JSON.stringify(defaults[field]) ? "default" : "code",
  }));
}

/** Never a secret: only what kind of thing is set. */
export function settingText(field: FieldName, value: unknown): string {
  if (value === undefined) return "-";
  if (field === "password" || field === "encryption") return value === false ? "off" : "set";
  if (field === "kvUrl") return redactUrl(String(value));
  if (field === "backend" || field === "metrics") return Object(value).constructor?.name ?? "set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
