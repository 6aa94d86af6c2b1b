// Without the optional packages: nothing is required until it is used, and then the message states what to do.
import { describe, expect, it, vi } from "vitest";
import { MissingPeerError } from "../../../src/core/errors.ts";

vi.mock("../../../src/core/peer-package.ts", async (original) => {
  const real = await original<typeof import("../../../src/core/peer-package.ts")>();
  const { MissingPeerError } = await import("../../../src/core/errors.ts");
  return {
    ...real,
    optionalPackage: () => undefined,
    requiredPackage: (name: string, feature: string) => {
      throw new MissingPeerError(name, feature);
    },
  };
});

const { OtelCollector } = await import("../../../src/metrics/opentelemetry/otel.ts");
const { PullCollector } = await import("../../../src/metrics/prometheus/pull.ts");
const { traceWithOpenTelemetry } = await import("../../../src/metrics/opentelemetry/spans.ts");
const { optionalPackage, requiredPackage } = await vi.importActual<
  typeof import("../../../src/core/peer-package.ts")
>("../../../src/core/peer-package.ts");

describe("without the optional packages", () => {
  it("a PullCollector has its own registry", async () => {
    const collector = new PullCollector({ namespace: "alone" });
    expect(await collector.metrics()).toContain("# TYPE alone_cache_gets_total counter\n");
    // It is not shared: the same names can be used again.
    expect(() => new PullCollector({ namespace: "alone" })).not.toThrow();
  });

  it("OpenTelemetry is reported as missing, with the install command", () => {
    for (const use of [() => new OtelCollector(), () => traceWithOpenTelemetry()]) {
      expect(use).toThrow(MissingPeerError);
      expect(use).toThrow(/Run: npm install "?@opentelemetry\/api@/);
    }
  });
});

describe("loading a package", () => {
  it("returns it, or nothing, or an error with the command", () => {
    expect(optionalPackage("prom-client")).toHaveProperty("register");
    expect(optionalPackage("no-such-package-here")).toBeUndefined();
    expect(() => requiredPackage("no-such-package-here", "This")).toThrow(
      'This needs the package "no-such-package-here"',
    );
  });
});
