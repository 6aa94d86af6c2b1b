// Drawing tools for the charts and diagrams of the docs: one palette for light and dark, and a few shapes.

export const SANS = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";

/** Each picture has its own background, so that it is readable wherever it is embedded. */
const STYLE = `
    .card { fill: #ffffff; stroke: #d0d7de; }
    .lane { fill: #f6f8fa; stroke: #d0d7de; }
    .box { fill: #ffffff; stroke: #57606a; stroke-width: 1.3; }
    .entry { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.3; }
    .stamp { fill: #fff8c5; stroke: #9a6700; stroke-width: 1.3; }
    .good { fill: #dafbe1; stroke: #1a7f37; stroke-width: 1.3; }
    .bad { fill: #ffebe9; stroke: #cf222e; stroke-width: 1.3; }
    .line { stroke: #57606a; stroke-width: 1.6; fill: none; }
    .dashed { stroke-dasharray: 5 4; }
    .tip { fill: #57606a; }
    .ink { fill: #1f2328; }
    .dim { fill: #57606a; font-size: 13px; }
    .head { fill: #1f2328; font-size: 17px; font-weight: 600; }
    .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 13px; }
    .ours { fill: #0969da; }
    .other { fill: #afb8c1; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #0d1117; stroke: #3d444d; }
      .lane { fill: #151b23; stroke: #3d444d; }
      .box { fill: #0d1117; stroke: #9198a1; }
      .entry { fill: #0c2d6b; stroke: #4493f8; }
      .stamp { fill: #3b2300; stroke: #d29922; }
      .good { fill: #0f2d17; stroke: #3fb950; }
      .bad { fill: #3c0b0e; stroke: #f85149; }
      .line { stroke: #9198a1; }
      .tip { fill: #9198a1; }
      .ink, .head { fill: #f0f6fc; }
      .dim { fill: #b1bac4; }
      .ours { fill: #4493f8; }
      .other { fill: #59636e; }
    }`;

/** @param {string} value */
const escaped = (value) => value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** @typedef {{ width: number, height: number, title: string, description: string, body: readonly string[] }} Picture */

/** @param {Picture} picture */
export function svg({ width, height, title, description, body }) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description" font-family="${SANS}" font-size="15">
  <title id="title">${escaped(title)}</title>
  <desc id="description">${escaped(description)}</desc>
  <style>${STYLE}
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path class="tip" d="M0 0 L10 5 L0 10 z"/></marker>
  </defs>
  <rect class="card" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="12"/>
  ${body.join("\n  ")}
</svg>
`;
}

/**
 * @param {string} shape @param {number} x @param {number} y @param {string} content
 * @param {"start" | "middle" | "end"} [anchor]
 */
export const text = (shape, x, y, content, anchor = "start") =>
  `<text class="${shape}" x="${x}" y="${y}"${anchor === "start" ? "" : ` text-anchor="${anchor}"`}>${escaped(content)}</text>`;

/** @param {string} shape @param {number} x @param {number} y @param {number} width @param {number} height */
export const rect = (shape, x, y, width, height, radius = 6) =>
  `<rect class="${shape}" x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}"/>`;

/**
 * A box with centred lines: the first in ink, the rest dim.
 * @param {string} shape @param {number} x @param {number} y @param {number} width @param {number} height
 * @param {...string} lines
 */
export function box(shape, x, y, width, height, ...lines) {
  const step = 19;
  const top = y + height / 2 - ((lines.length - 1) * step) / 2 + 5;
  return [
    rect(shape, x, y, width, height),
    ...lines.map((line, index) =>
      text(index === 0 ? "ink" : "dim", x + width / 2, top + index * step, line, "middle"),
    ),
  ].join("");
}

/**
 * A line along `path` that ends in an arrow.
 * @param {string} path
 */
export const arrow = (path, dashed = false) =>
  `<path class="line${dashed ? " dashed" : ""}" d="${path}" marker-end="url(#arrow)"/>`;
