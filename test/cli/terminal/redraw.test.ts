// Redrawing in place on terminals of any size, and on those that do not tell theirs.
import { expect, test } from "vitest";
import { Output, type Stream } from "../../../src/cli/terminal/output.ts";
import { Progress } from "../../../src/cli/terminal/progress.ts";
import { Redraw } from "../../../src/cli/terminal/redraw.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const LINES = ["hit rate  94.2 %", "ops/s  1,240", "errors  0"];

function terminal(size: { columns?: number; rows?: number }): { stream: Stream; text: () => string } {
  const parts: string[] = [];
  const stream = { isTTY: true, ...size, write: (part: string) => parts.push(part) > 0, on: () => stream };
  return { stream: stream as unknown as Stream, text: () => parts.join("") };
}

test("lines that do not fit are cut, and no more are drawn than fit", () => {
  const { stream, text } = terminal({ columns: 10, rows: 3 });
  new Redraw(stream).draw(LINES);
  expect(text()).toContain("hit rate ");
  expect(text()).not.toContain("94.2");
  expect(text()).not.toContain("errors");
});

// A pseudo-terminal whose size was never set, as in some containers and editors, has 0 rows and columns.
test.each([{}, { columns: 0, rows: 0 }])("%j is drawn as a terminal of the usual size", (size) => {
  const { stream, text } = terminal(size);
  new Redraw(stream).draw(LINES);
  for (const line of LINES) expect(text()).toContain(line);
  const out = new Output({
    stdout: stream,
    stderr: stream,
    json: false,
    color: false,
    env: { TERM: "xterm" },
  });
  expect(out.columns).toBe(80);
  new Progress(out, new ManualClock()).update(1_000, 0.5);
  expect(text()).toContain("50 %  1,000");
});
