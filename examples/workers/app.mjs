// Worker processes that share what they computed through a folder, without a server. `npm start`
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { XCache } from "xcache";

const WORKERS = 3;
const REPORTS = 12;
const folder = mkdtempSync(join(tmpdir(), "xcache-workers-"));
const kvUrl = pathToFileURL(folder).href;

/** Fresh processes, each of which asks for every report. Prints how many reports were really made. */
async function round(title) {
  const made = await Promise.all(
    Array.from({ length: WORKERS }, async () => {
      const worker = fork(new URL("worker.mjs", import.meta.url), [kvUrl, String(REPORTS)]);
      const ended = once(worker, "exit").then(([code]) => {
        // It may not have said a word.
        if (code !== 0) throw new Error(`A worker ended with ${code}.`);
      });
      const [[count]] = await Promise.all([once(worker, "message"), ended]);
      return count;
    }),
  );
  const sum = made.reduce((total, count) => total + count);
  const asked = `${WORKERS} processes ask for ${WORKERS * REPORTS} reports`;
  console.log(`${title.padEnd(22)} ${asked}, ${String(sum).padStart(2)} are made (${made.join(" + ")})`);
}

const cache = new XCache({ kvUrl });
try {
  await round("empty folder");
  await round("new processes");
  await cache.invalidateTags("quarter:1");
  await round("quarter 1 invalidated");
} finally {
  await cache.disconnect();
  rmSync(folder, { recursive: true });
}
