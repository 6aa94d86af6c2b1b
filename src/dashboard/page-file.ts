// Loads the page, which scripts/build/page.mjs puts together.

export interface BuiltPage {
  readonly html: string;
  /** The content security policy: nothing but the page's own script and style. */
  readonly policy: string;
}

let loading: Promise<BuiltPage> | undefined;

/** Two folders up is the package, from the sources as from what is published. */
export function loadPage(): Promise<BuiltPage> {
  const place = new URL("../../dist/dashboard/page.js", import.meta.url).href;
  loading ??= import(place).then(({ page }) => page as BuiltPage);
  return loading;
}
