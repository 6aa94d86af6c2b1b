// The page, which scripts/build/page.mjs builds after the sources are compiled.
declare module "*/dist/dashboard/page.js" {
  export const page: {
    readonly html: string;
    /** The content security policy: nothing but the page's own script and style. */
    readonly policy: string;
  };
}
