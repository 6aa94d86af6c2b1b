// Debian's Chromium, driven by playwright-core: one browser per file, with a profile of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { binaryOf } from "./machine.ts";
import { serversFolder } from "./run-folder.ts";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export interface Browser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

/** `bypassCSP`: so that a test can add scripts of its own, such as axe. */
export async function startBrowser({ bypassCSP = false } = {}): Promise<Browser> {
  const profile = mkdtempSync(join(serversFolder(), "chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: binaryOf("chromium"),
    headless: true,
    args: FLAGS,
    bypassCSP,
    reducedMotion: "reduce",
    viewport: { width: 1440, height: 900 },
  });
  return {
    context,
    async close() {
      await context.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
