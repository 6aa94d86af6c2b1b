// Parses email addresses, strictly enough that none can inject a header or a second recipient.
import { describeArrival } from "../core/errors.ts";
import { nodeUrl, unicodePattern } from "../core/lazy-builtin.ts";
import { refusal } from "./checks.ts";

const notInDomains = unicodePattern(String.raw`[^\p{L}\p{M}\p{N}.-]`);
const namedAddress = unicodePattern(String.raw`^([^<>"\p{Cc}\p{Surrogate}]{0,128})<([^<>]*)>$`);

/** RFC 5321 section 4.5.3.1, and atoms of RFC 5322 section 3.2.3; quoted local parts are not supported. */
const LONGEST_ADDRESS = 254;
const LONGEST_LOCAL = 64;
const ATOMS = /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The address with its domain in ASCII; undefined if invalid. */
function parseAddress(text: string): string | undefined {
  const at = text.lastIndexOf("@");
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 0 || local.length > LONGEST_LOCAL || !ATOMS.test(local)) return undefined;
  // domainToASCII would truncate at characters that end a URL host, instead of rejecting them.
  if (notInDomains().test(domain)) return undefined;
  const ascii = nodeUrl().domainToASCII(domain);
  const address = `${local}@${ascii}`;
  return DOMAIN.test(ascii) && address.length <= LONGEST_ADDRESS ? address : undefined;
}

export function requireAddress(field: string, text: string): string {
  const address = parseAddress(text);
  if (address === undefined) {
    throw refusal(field, "an email address such as ops@example.com", describeArrival(text));
  }
  return address;
}

export interface Sender {
  readonly name: string;
  readonly address: string;
}

/** `alerts@example.com` or `Cache alerts <alerts@example.com>`. */
export function requireSender(field: string, value: unknown): Sender {
  const text = typeof value === "string" ? value : "";
  const [, name = "", inBrackets] = namedAddress().exec(text) ?? [];
  const address = parseAddress(inBrackets ?? text);
  if (address !== undefined) return { name: name.trim(), address };
  const expected = "an email address such as alerts@example.com or Cache alerts <alerts@example.com>";
  throw refusal(field, expected, describeArrival(value));
}
