// OpenTelemetry spans: one per operation, the parent of the spans of its load.
import { XCacheError } from "../../core/errors.ts";
import { VERSION } from "../../version.ts";
import { runInSpans, type TraceContext } from "../tracing.ts";
import { type OtelSpan, type OtelTracerProvider, otelApi } from "./otel-api.ts";

export interface SpanOptions {
  /** Default: the one registered by the application. */
  readonly tracerProvider?: OtelTracerProvider;
}

/** Operations whose result says whether the entry exists. */
const LOOKUPS: ReadonlySet<string> = new Set(["get", "exists", "ttl", "tags"]);

/**
 * Runs every operation of every cache in a span from now on. Happens automatically for a cache created after the
 * application has registered a tracer provider. Returns a function that stops it. Throws MissingPeerError without
 * @opentelemetry/api.
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

  const runner = <T>(context: TraceContext, work: () => Promise<T>): Promise<T> => {
    const options = { kind: SpanKind.INTERNAL, attributes: attributesOf(context) };
    return tracer.startActiveSpan(`xcache.${context.operation}`, options, async (span) => {
      try {
        const result = await work();
        if (LOOKUPS.has(context.operation)) {
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

/** Without the key: it may be private, and tracing backends index attributes. */
function attributesOf({ operation, prefix }: TraceContext): Record<string, string> {
  return { "xcache.operation": operation, "xcache.prefix": prefix };
}

/** Where the API package stores the registered providers; reading it loads nothing. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");

/** Whether tracing was started before; then it is never started automatically again. */
let isDecided = false;

/** Starts tracing if a tracer provider is registered; called whenever a cache is created. */
export function traceIfRegistered(): void {
  if (isDecided) return;
  const registered = (globalThis as { [REGISTERED]?: { readonly trace?: unknown } })[REGISTERED];
  if (registered?.trace === undefined) return;
  isDecided = true;
  try {
    traceWithOpenTelemetry();
  } catch {
    // The package that registered it cannot be loaded from here.
  }
}
