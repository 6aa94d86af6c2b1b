// What axe finds wrong with the page as it is now. Needs a browser that does not enforce the page's policy.
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Axe {
  run(options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** Each with the elements that it is about. */
export async function violations(page: Page): Promise<string[]> {
  // It stays in the page, whose screens change without loading another.
  if (!(await page.evaluate("'axe' in globalThis"))) await page.addScriptTag({ path: AXE });
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: Axe };
    // What passes is not described, which is most of the work.
    const found = await axe.run({ resultTypes: ["violations"] });
    return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
  });
}
