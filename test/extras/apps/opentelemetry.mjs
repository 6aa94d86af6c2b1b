import { metrics } from "@opentelemetry/api";
import { OtelCollector } from "xcache";
import { check, works } from "./check.mjs";

check(typeof metrics.getMeter, "function", "the API");
new OtelCollector().increment("cache.hits.total");
works("@opentelemetry/api");
