// The options of the mail server for email alerts, and their validation.
import { requireOptions } from "../core/arguments.ts";
import { describeArrival } from "../core/errors.ts";
import { unicodePattern } from "../core/lazy-builtin.ts";
import { refusal, requireText } from "./checks.ts";
import { requireSender, type Sender } from "./email-address.ts";

const notInHosts = unicodePattern(String.raw`[\s/@\p{Cc}]`);

export interface SmtpOptions {
  readonly host: string;
  /** Default: 465 when `secure`, else 587. */
  readonly port?: number;
  /** TLS from the first byte, instead of STARTTLS. Default: whether the port is 465. */
  readonly secure?: boolean;
  /**
   * Whether to fail if the connection cannot be encrypted. If false, STARTTLS is used only if the server offers it.
   * Default: true if `auth` is set, so that no password is sent in clear text.
   */
  readonly requireTls?: boolean;
  readonly auth?: { readonly user: string; readonly pass: string };
  /** `alerts@example.com` or `Cache alerts <alerts@example.com>`. */
  readonly from: string;
  readonly tls?: SmtpTlsOptions;
}

export interface SmtpTlsOptions {
  /** Certificate authorities to trust instead of the default ones, in PEM. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /** The name in the certificate, if it is not `host`. */
  readonly servername?: string;
  /** Default: true. */
  readonly rejectUnauthorized?: boolean;
}

export interface CheckedSmtp {
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  readonly requireTls: boolean;
  readonly auth?: { readonly user: string; readonly pass: string };
  readonly from: Sender;
  readonly tls?: SmtpTlsOptions;
}

const FIELDS: readonly (keyof SmtpOptions)[] = [
  "host",
  "port",
  "secure",
  "requireTls",
  "auth",
  "from",
  "tls",
];
const TLS_FIELDS: readonly (keyof SmtpTlsOptions)[] = ["ca", "servername", "rejectUnauthorized"];

const SMTPS_PORT = 465;
const SUBMISSION_PORT = 587;
const LONGEST_HOST = 255;

/** Throws ConfigError, which never shows the password. */
export function requireSmtp(options: SmtpOptions): CheckedSmtp {
  requireOptions(options, FIELDS);
  const host = requireText("smtp.host", options.host, LONGEST_HOST);
  if (notInHosts().test(host))
    throw refusal("smtp.host", "a host name without scheme or user", "something else");
  const port = requirePort(options.port ?? (options.secure === true ? SMTPS_PORT : SUBMISSION_PORT));
  const auth = options.auth === undefined ? undefined : requireAuth(options.auth);
  if (options.tls !== undefined) requireOptions(options.tls, TLS_FIELDS);
  return {
    host,
    port,
    secure: requireChoice("smtp.secure", options.secure, port === SMTPS_PORT),
    requireTls: requireChoice("smtp.requireTls", options.requireTls, auth !== undefined),
    from: requireSender("smtp.from", options.from),
    ...(auth === undefined ? {} : { auth }),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
  };
}

function requirePort(port: unknown): number {
  if (Number.isInteger(port) && (port as number) >= 1 && (port as number) <= 65_535) return port as number;
  throw refusal("smtp.port", "a whole number from 1 to 65535", describeArrival(port));
}

function requireChoice(field: string, value: unknown, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === "boolean") return value;
  throw refusal(field, "true or false", describeArrival(value));
}

function requireAuth(auth: unknown): { user: string; pass: string } {
  requireOptions(auth, ["user", "pass"]);
  const { user, pass } = auth as Record<string, unknown>;
  if (typeof user === "string" && user !== "" && typeof pass === "string" && pass !== "")
    return { user, pass };
  throw refusal("smtp.auth", "{ user, pass } of two non-empty strings", "something else (not shown)");
}
