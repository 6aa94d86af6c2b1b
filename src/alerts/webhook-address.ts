// Parses a webhook URL: the URL without credentials, which are sent in a header, and a label that is safe to show.
import { unicodePattern } from "../core/lazy-builtin.ts";
import { refusal } from "./checks.ts";

const controlCharacter = unicodePattern(String.raw`\p{Cc}`);

export interface WebhookAddress {
  /** Without user and password. */
  readonly url: URL;
  /** The value of the Authorization header. */
  readonly authorization?: string;
  /** Scheme and host only: the path of a webhook is often its secret. */
  readonly label: string;
}

const FIELD = "webhookUrl";
const EXPECTED = "an http or https address";

/** Throws ConfigError, which never shows the address. */
export function requireWebhookAddress(text: string): WebhookAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw refusal(FIELD, EXPECTED, "a string that is not an absolute URL");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    // Without `//` a host or user name is parsed as the scheme, so the scheme is shown only if `://` follows.
    const scheme = text.includes("://")
      ? `one with the scheme "${url.protocol.slice(0, -1)}"`
      : "another kind of URL";
    throw refusal(FIELD, EXPECTED, scheme);
  }
  const authorization = authorizationOf(url);
  const label = `webhook ${url.protocol}//${url.host}`;
  url.username = "";
  url.password = "";
  url.hash = "";
  return authorization === undefined ? { url, label } : { url, authorization, label };
}

/** RFC 7617: the user name ends at the first colon, and neither part holds control characters. */
function authorizationOf({ username, password }: URL): string | undefined {
  if (username === "" && password === "") return undefined;
  const [user, secret] = [decode(username), decode(password)];
  if (
    user === undefined ||
    secret === undefined ||
    user.includes(":") ||
    controlCharacter().test(user + secret)
  ) {
    throw refusal(FIELD, EXPECTED, "credentials that cannot be sent in a header");
  }
  return `Basic ${Buffer.from(`${user}:${secret}`).toString("base64")}`;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
