// Whether a request comes from the dashboard's own page, or from that of another origin.

/**
 * A browser says where a request comes from; one without it is no browser's, or a navigation. `host`: the request's own.
 *
 * Behind a proxy that replaces Host, the browser's word for it is Sec-Fetch-Site, which no script can set, and the proxy's
 * X-Forwarded-Host: a script of another origin cannot send that header without a preflight, which is never answered.
 */
export function isForeign(request: Request, host: string): boolean {
  const { headers } = request;
  const site = headers.get("sec-fetch-site");
  if (request.method !== "GET" && site !== null && site !== "same-origin" && site !== "none") return true;
  const origin = headers.get("origin");
  if (origin === null || site === "same-origin") return false;
  const [forwarded = ""] = (headers.get("x-forwarded-host") ?? "").split(",");
  const name = origin.replace(/^https?:\/\//, "").toLowerCase();
  return name !== host && name !== forwarded.trim().toLowerCase();
}
