// Credentials of a request: fields that identify a user, and certificates. What is answered to one user is not for another.
import type { RequestInfo } from "./exchange.ts";

/** Identify a user in every application. */
const ALWAYS = ["authorization", "cookie"];

/** Fields of API keys, and those in which proxies name the user they authenticated. A `*` stands for any rest of a name. */
export const CREDENTIAL_HEADERS: readonly string[] = [
  "proxy-authorization",
  "x-api-key",
  "x-auth-token",
  "remote-user",
  "x-remote-user",
  "x-auth-request-*",
  "x-forwarded-user",
  "x-forwarded-email",
  "x-forwarded-access-token",
  "x-forwarded-client-cert",
  "cf-access-jwt-assertion",
  "x-amzn-oidc-*",
];

export class Credentials {
  readonly #names: ReadonlySet<string>;
  readonly #prefixes: readonly string[];

  /** `names`: in lower case, in addition to Authorization and Cookie. */
  constructor(names: readonly string[]) {
    this.#names = new Set([...ALWAYS, ...names.filter((name) => !name.endsWith("*"))]);
    this.#prefixes = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  }

  /** Whether a field with this name, in lower case, identifies a user. */
  has(name: string): boolean {
    return this.#names.has(name) || this.#prefixes.some((prefix) => name.startsWith(prefix));
  }

  /** What identifies the user of a request, or undefined if nothing does. */
  of(request: RequestInfo): string | undefined {
    for (const name of request.headerNames()) if (this.has(name)) return name;
    return request.hasClientCertificate ? "certificate" : undefined;
  }
}

export const USUAL_CREDENTIALS = new Credentials(CREDENTIAL_HEADERS);
