// Visits a running example the way its README says, and prints how each answer came about.

/** `--tour`: the example shows itself and ends, instead of waiting for visitors. */
export const isTour = process.argv.includes("--tour");

/**
 * One visit: `"GET /products/1"`. A line of the output: request, status, what the cache did, time, answer.
 * @param {string} address
 * @param {string} request
 * @param {Record<string, string>} [headers]
 */
export async function visit(address, request, headers = {}) {
  const [method, path] = request.split(" ");
  const started = performance.now();
  const response = await fetch(new URL(path, address), { method, headers });
  const body = (await response.text()).trim();
  const ms = `${(performance.now() - started).toFixed(0)} ms`;
  const did = (response.headers.get("cache-status") ?? "").replace("xcache; ", "");
  console.log(`${request.padEnd(26)} ${response.status}  ${did.padEnd(22)} ${ms.padStart(6)}  ${body}`);
  return response;
}
