// The part of @opentelemetry/api we use, declared here so that our types do not depend on the package.
import { requiredPackage } from "../../core/peer-package.ts";

type AttributeValues = Readonly<Record<string, string | number | boolean>>;

export interface OtelSpan {
  setAttribute(name: string, value: string | boolean): unknown;
  setStatus(status: { readonly code: number }): unknown;
  recordException(error: Error): void;
  end(): void;
}

export interface OtelTracer {
  startActiveSpan<T>(
    name: string,
    options: { readonly kind?: number; readonly attributes?: AttributeValues },
    run: (span: OtelSpan) => T,
  ): T;
}

/** Any object with `getTracer`, such as the provider of an SDK. */
export interface OtelTracerProvider {
  getTracer(name: string, version?: string): OtelTracer;
}

interface InstrumentOptions {
  readonly description?: string;
  readonly unit?: string;
  readonly advice?: { explicitBucketBoundaries?: number[] };
}

export interface OtelMeter {
  createCounter(
    name: string,
    options?: InstrumentOptions,
  ): { add(value: number, attributes?: AttributeValues): void };
  createGauge(
    name: string,
    options?: InstrumentOptions,
  ): { record(value: number, attributes?: AttributeValues): void };
  createHistogram(
    name: string,
    options?: InstrumentOptions,
  ): { record(value: number, attributes?: AttributeValues): void };
}

/** Any object with `getMeter`, such as the provider of an SDK. */
export interface OtelMeterProvider {
  getMeter(name: string, version?: string): OtelMeter;
}

export interface OtelApi {
  readonly trace: OtelTracerProvider;
  readonly metrics: OtelMeterProvider;
  readonly SpanKind: { readonly INTERNAL: number };
  readonly SpanStatusCode: { readonly ERROR: number };
}

/** Throws MissingPeerError when the package is not installed. */
export const otelApi = (feature: string): OtelApi =>
  requiredPackage("@opentelemetry/api", feature) as OtelApi;
