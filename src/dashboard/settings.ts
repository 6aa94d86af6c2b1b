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

type Config = CheckedOptions["inside"]["root"]["config"];

/** Where the cache is: a backend object has no address, and `kv_url` is not in force beside it. */
export const addressOf = ({ backend, kvUrl }: Config): string =>
  backend === undefined ? redactUrl(kvUrl) : settingText("backend", backend);

/** The fields in force; what differs from the default comes from the code. */
export function configured(config: Config): readonly Setting[] {
  const defaults = resolveConfig({});
  return fieldNames().map((field) => {
    const value = settingText(field, config[field]);
    return {
      name: wireName(field),
      value,
      origin: value === settingText(field, defaults[field]) ? "default" : "code",
    };
  });
}

/** Never a secret: only what kind of thing is set. */
export function settingText(field: FieldName, value: unknown): string {
  if (value === undefined) return "-";
  if (field === "password" || field === "encryption") return value === false ? "off" : "set";
  if (field === "kvUrl") return redactUrl(String(value));
  if (field === "backend" || field === "metrics") return Object(value).constructor?.name ?? "set";
  return typeof value === "object" ? JSON.stringify(value, withInfinity) : String(value);
}

/** JSON has no Infinity. */
const withInfinity = (_: string, value: unknown): unknown =>
  value === Number.POSITIVE_INFINITY ? String(value) : value;
