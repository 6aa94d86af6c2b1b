// Keeps credentials out of messages. When in doubt it hides more than it must.

const HIDDEN = "***";

/** Query names whose value is a secret; all that follows one is hidden, as a raw secret may hold `&` or `#`. */
const SECRET_OPTION =
  /([?&;][^=&;?#\s]{0,64}(?:pass|pwd|secret|token|auth|key(?!_file)|credential)[^=&;?#\s]{0,64}=).*$/is;

const SCHEME = /^[a-z][a-z0-9+.-]*$/i;

/** Hides a port that is no number: `user:secret` looks like this when the `@host` was forgotten. */
function redactHost(host: string): string {
  if (/^\[[\w:.%]*\](:\d{0,5})?[:.;]?$/.test(host)) return host;
  const colon = host.indexOf(":");
  if (colon < 0 || /^\d{0,5}[:.;]?$/.test(host.slice(colon + 1))) return host;
  return `${host.slice(0, colon + 1)}${HIDDEN}`;
}

/** What stands behind `://`. */
function redactRest(rest: string): string {
  const secret = SECRET_OPTION.exec(rest);
  const at = rest.lastIndexOf("@");
  // Either a secret option with an `@` in it or a password with a `?` in it: only hiding all of it is safe.
  if (secret !== null && at > secret.index) return HIDDEN;
  const open = secret === null ? rest : rest.slice(0, secret.index) + secret[1] + HIDDEN;
  if (at >= 0) return `${HIDDEN}${open.slice(at)}`;
  const end = open.search(/[/?#]/);
  const authority = end < 0 ? open : open.slice(0, end);
  return authority.split(",").map(redactHost).join(",") + open.slice(authority.length);
}

/**
 * The address with everything before its last `@` hidden, and the value of any option that sounds like a secret.
 * Never throws, whatever the string; a raw `/`, `?`, `#` or `@` in a password is hidden too.
 */
export function redactUrl(url: string): string {
  const mark = url.indexOf("://");
  const scheme = mark < 0 ? "" : url.slice(0, mark);
  return SCHEME.test(scheme) ? `${scheme}://${redactRest(url.slice(mark + 3))}` : redactRest(url);
}

/** A URL within a text goes on to the end of the line or the next URL. */
const URL_IN_TEXT =
  /(?<![a-z0-9+.-])([a-z0-9+.-]*:\/\/)((?:(?![\s"'`(<[,;=][a-z][a-z0-9+.-]*:\/\/)[^\r\n])*)/gi;

/**
 * The text with the credentials of every URL in it hidden. In a text nothing tells where a raw password with spaces
 * ends, so a line is hidden up to its last `@` (or to the next URL on it); a secret option ends at a space.
 */
export function redactText(text: string): string {
  return text.replace(URL_IN_TEXT, (_, scheme: string, rest: string) => {
    if (rest.includes("@")) return scheme + redactRest(rest);
    const end = rest.search(/[\s"'`)>\]]/);
    return end < 0 ? scheme + redactRest(rest) : scheme + redactRest(rest.slice(0, end)) + rest.slice(end);
  });
}

/** How many causes behind an error are looked at. */
const DEEPEST_CAUSE = 5;

/** Hides credentials in an error's own words, its stack and those of its causes; it stays the same object. */
export function redactError<E extends Error>(error: E): E {
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < DEEPEST_CAUSE; depth++) {
    for (const name of ["message", "stack"] as const) {
      const words = current[name];
      const redacted = typeof words === "string" ? redactText(words) : words;
      if (redacted !== words)
        Object.defineProperty(current, name, { value: redacted, configurable: true, writable: true });
    }
    current = current.cause;
  }
  return error;
}
