// Removes credentials from messages. When in doubt it hides more than necessary.

const HIDDEN = "***";

/** Query parameters with a secret value; everything after one is hidden, since a raw secret may contain `&` or `#`. */
const SECRET_OPTION =
  /([?&;][^=&;?#\s]{0,64}(?:pass|pw|secret|token|auth|key(?!_file)|credential)[^=&;?#\s]{0,64}=).*$/is;

const SCHEME = /^[a-z][a-z0-9+.-]*$/i;

/** Where a non-numeric port begins, or -1: `user:secret` looks like this when the `@host` was forgotten. */
function oddPortIn(host: string): number {
  if (/^\[[\w:.%]*\](:\d{0,5})?[:.;]?$/.test(host)) return -1;
  const port = host.indexOf(":") + 1;
  return port === 0 || /^\d{0,5}[:.;]?$/.test(host.slice(port)) ? -1 : port;
}

/** For text without an `@`. A secret in place of a port may continue after any `,` `/` `?` or `#`, so the rest is hidden. */
function redactHosts(rest: string): string {
  let start = 0;
  for (const host of (/^[^/?#]*/.exec(rest)?.[0] ?? "").split(",")) {
    const port = oddPortIn(host);
    if (port >= 0) return rest.slice(0, start + port) + HIDDEN;
    start += host.length + 1;
  }
  return rest;
}

/** The part after `://`. */
function redactRest(rest: string): string {
  const secret = SECRET_OPTION.exec(rest);
  const at = rest.lastIndexOf("@");
  // Either a secret option with an `@` in it or a password with a `?` in it: only hiding all of it is safe.
  if (secret !== null && at > secret.index) return HIDDEN;
  const open = secret === null ? rest : rest.slice(0, secret.index) + secret[1] + HIDDEN;
  return at >= 0 ? `${HIDDEN}${open.slice(at)}` : redactHosts(open);
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

/** How many causes of an error are redacted. */
const DEEPEST_CAUSE = 5;

/**
 * Hides credentials in the message and stack of an error and its causes, in place. Never throws: an error that is frozen or
 * cannot be read is replaced.
 */
export function redactError<E extends Error>(error: E): E | Error {
  try {
    hideIn(error);
    return error;
  } catch {
    return replacementOf(error);
  }
}

function hideIn(error: Error): void {
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
}

function replacementOf(error: Error): Error {
  try {
    const { code } = error as NodeJS.ErrnoException;
    return Object.assign(new Error(redactText(String(error.message))), code === undefined ? {} : { code });
  } catch {
    return new Error("an error that cannot be read");
  }
}
