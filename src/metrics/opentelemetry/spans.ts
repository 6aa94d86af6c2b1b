// OpenTelemetry spans: one for each operation, the parent of whatever its load does.
import { XCacheError } from "../../core/errors.ts";
import { VERSION } from "../../version.ts";
import { runInSpans, type TraceContext } from "../tracing.ts";
import { type OtelSpan, type OtelTracerProvider, otelApi } from "./otel-api.ts";

export interface SpanOptions {
  /** Default: the one that the application has registered. */
  readonly tracerProvider?: OtelTracerProvider;
}

/** Operations whose result says whether there was an entry. */
const FINDERS: ReadonlySet<string> = new Set(["get", "exists", "ttl", "tags"]);

/**
 * Runs every operation of every cache in a span from now on. A cache does so itself when it is made after the
 * application has registered a tracer provider. Returns how to stop. Throws MissingPeerError without @opentelemetry/api.
 */
export function traceWithOpenTelemetry({ tracerProvider }: SpanOptions = {}): () => void {
  const { SpanKind, SpanStatusCode, trace } = otelApi("Tracing with OpenTelemetry");
  const tracer = (tracerProvider ?? trace).getTracer("xcache", VERSION);

  const failed = (span: OtelSpan, error: unknown): void => {
    if (error instanceof Error) span.recordException(error);
    const type = error instanceof XCacheError ? error.errorType : "unknown";
    span.setAttribute("error.type", type);
    span.setStatus({ code: SpanStatusCode.ERROR });
  };

  const runner = <T>(about: TraceContext, work: () => Promise<T>): Promise<T> => {
    const options = { kind: SpanKind.INTERNAL, attributes: attributesOf(about) };
    return tracer.startActiveSpan(`xcache.${about.operation}`, options, async (span) => {
      try {
        const result = await work();
        if (FINDERS.has(about.operation)) {
          span.setAttribute("xcache.hit", result !== undefined && result !== false);
        }
        return result;
      } catch (error) {
        failed(span, error);
        throw error;
      } finally {
        span.end();
      }
    });
  };
  runInSpans(runner);
  current = runner;
  isDecided = true;
  return () => {
    if (current === runner) runInSpans(undefined);
  };
}

let current: unknown;

/** No key: it may be private, and a backend may index attributes. */
function attributesOf({ operation, prefix }: TraceContext): Record<string, string> {
  return { "xcache.operation": operation, "xcache.prefix": prefix };
}

/** Where the API package keeps what an application has registered; looking there loads nothing. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

/** Whether somebody has begun to make spans: from then on it is not done unasked. */
let isDecided = false;

/** Starts to make spans if a tracer provider is registered; asked whenever a cache is made. */
export function traceIfRegistered(): void {
  if (isDecided) return;
  const registered = (globalThis as { [REGISTERED]?: { readonly trace?: unknown } })[REGISTERED];
  if (registered?.trace === undefined) return;
  isDecided = true;
  try {
    traceWithOpenTelemetry();
  } catch {
    // The package that registered it is not one that can be loaded from here.
  }
}
