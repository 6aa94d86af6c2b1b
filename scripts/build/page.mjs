// Builds the dashboard's page: one HTML text with its script and style, next to the licences of its contents.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

/** What the script consists of besides our own files. */
const PACKAGES = ["preact", "@preact/signals", "@preact/signals-core", "htm"];

/** @param {string} text */
const hashOf = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** @param {string} root */
async function scriptOf(root) {
  const built = await build({
    configFile: false,
    logLevel: "error",
    root,
    build: {
      write: false,
      minify: "esbuild",
      target: "es2022",
      modulePreload: false,
      rollupOptions: { input: join(root, "dashboard/main.mjs"), output: { format: "iife" } },
    },
  });
  const [output] = Array.isArray(built) ? built : [built];
  if (output === undefined || !("output" in output)) throw new Error("the page was not built");
  // Must not end an element early.
  // The templates are indented for their readers.
  return output.output[0].code.trim().replace(/\n\s+/g, " ").replaceAll("</script", "<\\/script");
}

/** @param {string} root */
function styleOf(root) {
  const own = readFileSync(join(root, "dashboard/style.css"), "utf8");
  return own
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,>]) ?/g, "$1")
    .replace(/: /g, ":")
    .trim();
}

/** @param {string} root */
function licencesOf(root) {
  const texts = PACKAGES.map((name) => {
    const folder = join(root, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const text = readFileSync(join(folder, "LICENSE"), "utf8").trim();
    return `${name} ${version} (${license})\n${text}`;
  });
  // Must not end a comment early.
  return texts.join("\n\n").replaceAll("*/", "* /");
}

/**
 * Writes page.js, which exports the page and its policy.
 * @param {string} root
 * @param {string} file
 */
export async function writePage(root, file) {
  const [script, style] = [await scriptOf(root), styleOf(root)];
  const icon =
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230e9a92'/%3E%3C/svg%3E";
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer"><title>xcache</title><link rel="icon" href="${icon}"><style>${style}</style></head><body><noscript>The dashboard needs JavaScript.</noscript><script>${script}</script></body></html>`;
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  mkdirSync(dirname(file), { recursive: true });
  const licences = `/* The page contains:\n\n${licencesOf(root)}\n*/`;
  writeFileSync(file, `${licences}\nexport const page = ${JSON.stringify({ html, policy })};\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [root = "", dist = ""] = process.argv.slice(2);
  await writePage(root, join(dist, "dashboard/page.js"));
}
