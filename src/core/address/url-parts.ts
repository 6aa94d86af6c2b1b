// Splits a store address into scheme, login, hosts and database. Hand-written, because URL supports a single host only.

import { ConfigError, describeArrival } from "../errors.ts";
import { unicodePattern } from "../lazy-builtin.ts";
import { redactUrl } from "../redact.ts";
import type { HostPort, Login } from "./address.ts";
import { decode } from "./url-options.ts";

const EXAMPLE = "redis://localhost:6379/0";
const LONGEST_SHOWN = 120;

/** Most addresses are ASCII: the classes of Unicode are then not collected. */
const PRINTABLE = /^[!-~]*$/;
const PLAIN_HOST_NAME = /^[\w.-]+$/;

const unencoded = unicodePattern(String.raw`[\s\p{Cc}]`);
const hostName = unicodePattern(String.raw`^[\p{L}\p{N}._-]+$`);

/** The parts of an address, not decoded yet. */
export interface Parts {
  readonly label: string;
  readonly scheme: string;
  /** Between `://` and the first `/`, `?` or the end. */
  readonly authority: string;
  readonly path: string;
  readonly query: string;
  fail(what: string): never;
}

export function splitAddress(url: unknown, label: string): Parts {
  const fail = (what: string): never => {
    throw new ConfigError("CONFIG_INVALID", `${label}: ${what}, got ${shown(url)}`);
  };
  if (typeof url !== "string") {
    throw new ConfigError(
      "CONFIG_INVALID",
      `${label} must be a store address such as ${EXAMPLE}, got ${describeArrival(url)}`,
    );
  }
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^/?]*)([^?]*)\??(.*)$/is.exec(url);
  if (match === null) return fail(`a store address must begin with a scheme, as in ${EXAMPLE}`);
  if (!PRINTABLE.test(url) && unencoded().test(url))
    return fail("white space and control characters must be percent-encoded");
  if (url.includes("#")) return fail("a # must be percent-encoded as %23");
  const [, scheme = "", authority = "", path = "", query = ""] = match;
  return { label, scheme: scheme.toLowerCase(), authority, path, query, fail };
}

function shown(url: unknown): string {
  const safe = redactUrl(String(url));
  return safe.length <= LONGEST_SHOWN ? JSON.stringify(safe) : `an address of ${safe.length} characters`;
}

/** Splits `user:password@` off; the rest is the hosts. */
export function readLogin({ authority, fail }: Parts): { login: Login; hosts: string } {
  const at = authority.lastIndexOf("@");
  const userInfo = authority.slice(0, Math.max(0, at));
  const colon = userInfo.indexOf(":");
  const username = decode(colon < 0 ? userInfo : userInfo.slice(0, colon));
  const password = decode(colon < 0 ? "" : userInfo.slice(colon + 1));
  if (username === undefined || password === undefined) {
    return fail("the user name or password is not valid percent-encoding (write % as %25)");
  }
  return {
    login: { username: username || undefined, password: password || undefined },
    hosts: authority.slice(at + 1),
  };
}

/** Loaded on first use: node:net takes about 4 ms. */
const isIPv6 = (host: string): boolean => process.getBuiltinModule("node:net").isIPv6(host);

function readHost(text: string, defaultPort: number, fail: Parts["fail"]): HostPort {
  // The zone of an IPv6 address is percent-encoded: %25eth0 (RFC 6874).
  const bracketed = /^\[([^\]]*)\](?::(.*))?$/.exec(text.replace("%25", "%"));
  const [, host = "", port] = bracketed ?? /^([^:]*)(?::(.*))?$/.exec(text) ?? [];
  if (host === "") return fail("a host is missing");
  if (bracketed !== null && !isIPv6(host)) return fail("the host in brackets must be an IPv6 address");
  if (bracketed === null && !PLAIN_HOST_NAME.test(host) && !hostName().test(host))
    return fail("a host name contains an invalid character");
  if (bracketed === null && port?.includes(":"))
    return fail("an IPv6 host must be in brackets, as in [::1]:6379");
  if (port === undefined) return { host, port: defaultPort };
  const number = /^\d{1,5}$/.test(port) ? Number(port) : 0;
  return number >= 1 && number <= 65_535
    ? { host, port: number }
    : fail("a port must be a whole number from 1 to 65535");
}

/** The hosts of a networked store, and the credentials. */
export function readNetwork(
  parts: Parts,
  defaultPort: number,
): Login & { hosts: readonly [HostPort, ...HostPort[]] } {
  // Treating it as an option or a path would reveal part of a password.
  if (parts.path.includes("@") || parts.query.includes("@")) {
    return parts.fail(
      "a / ? or @ in a user name, password or option must be percent-encoded (%2F, %3F, %40)",
    );
  }
  const { login, hosts: list } = readLogin(parts);
  const [first = "", ...others] = list.split(",");
  const read = (text: string): HostPort => readHost(text, defaultPort, parts.fail);
  const hosts: readonly [HostPort, ...HostPort[]] = [read(first), ...others.map(read)];
  if (new Set(hosts.map(({ host, port }) => `${host.toLowerCase()}:${port}`)).size < hosts.length) {
    return parts.fail("a host is named twice");
  }
  return { ...login, hosts };
}

export function readDatabase(fromPath: string, fromOption: number | undefined, fail: Parts["fail"]): number {
  if (fromPath === "") return fromOption ?? 0;
  if (fromOption !== undefined) return fail("the database is given twice, in the path and as db");
  return /^\d{1,9}$/.test(fromPath)
    ? Number(fromPath)
    : fail("the database must be a whole number of at least 0");
}
