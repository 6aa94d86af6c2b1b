// The public surface of xcache, and nothing else.
export type { Advice, AdviceCode } from "./advice/advice.ts";
export type { AlertComparison, AlertStatus } from "./alerts/condition.ts";
export type { AlertDefinition, AlertRule } from "./alerts/definition.ts";
export { type AlertDeliveries, AlertManager, type StopOptions } from "./alerts/manager.ts";
export type { AlertMetric } from "./alerts/metric.ts";
export type { AlertState } from "./alerts/monitor.ts";
export type { AlertNotification, AlertPayload } from "./alerts/notification.ts";
export type { AlertManagerOptions } from "./alerts/options.ts";
export type { AlertPattern, PatternOptions } from "./alerts/patterns.ts";
export type { SmtpOptions, SmtpTlsOptions } from "./alerts/smtp.ts";
export type { MetricsSource } from "./alerts/snapshot.ts";
export { DiskBackend } from "./backends/disk/backend.ts";
export type { DiskFolderOptions, DiskOptions, DiskUrlOptions, Durability } from "./backends/disk/options.ts";
export { KvBackend, type KvOptions } from "./backends/kv/backend.ts";
export { MemcachedBackend, type MemcachedOptions } from "./backends/memcached/backend.ts";
export { MemoryBackend, type MemoryBackendOptions } from "./backends/memory/backend.ts";
export type { EntryInfo, EntryPage, EntryScanOptions } from "./cache/entry-pages.ts";
export { cachedDependency } from "./cached-dependency.ts";
export type {
  CacheConfig,
  CircuitBreakerConfig,
  CompressionConfig,
  NearCacheConfig,
  ResolvedTable,
  TableConfig,
} from "./config/types.ts";
export type { Credentials, PasswordFunction } from "./core/address/address.ts";
export type { ReportedAlert } from "./core/alert-state.ts";
export type { ActivityOptions, StatsOptions } from "./core/arguments.ts";
export type {
  Backend,
  BackendHost,
  Capabilities,
  ConnectedServer as MetServer,
  Failed,
  KeyedRecord,
  PoolState,
  PushChannel,
  RecordTaker,
  ScanItem,
  SwapResult,
  TakenMany,
  Usage,
} from "./core/backend.ts";
export type { Clock, Timer } from "./core/clock.ts";
export type { Collector, MetricTags } from "./core/collector.ts";
export type {
  AcquiredConnection,
  CacheableResult as Keeping,
  CacheForSessions,
  ConnectionDriver,
  PooledStatement,
  SessionAdapter,
  SessionScope,
  SessionStatement,
  SessionTracker,
  StatementOptions as StatementTerms,
  TableSettings,
  TrackedConnection,
  TransactionStatus,
} from "./core/db-session.ts";
export type { Duration } from "./core/duration.ts";
export type { EncryptionConfig } from "./core/encryption-settings.ts";
export type { ErrorCode, ErrorType } from "./core/error-codes.ts";
export {
  AlertDeliveryError,
  BackendError,
  CircuitOpenError,
  CodecError,
  ConfigError,
  ConnectionError,
  type ErrorDetails,
  InvalidKeyError,
  MissingPeerError,
  OperationTimeoutError,
  UnsupportedError,
  XCacheError,
} from "./core/errors.ts";
export type { CacheEvent, CacheEvents, Listener } from "./core/events.ts";
export { decodeRecord, encodeRecord } from "./core/frame/frame.ts";
export type { GetOrSetOptions, Load, LoadAs, LoadContext, SetOptions, Tags } from "./core/options.ts";
export type { Entry, Lease, Payload, Stamp, StampSet, StoreRecord, TagStamp, Token } from "./core/record.ts";
export type {
  CacheStats,
  ComprehensiveMetrics,
  DetailedHealth,
  FleetActivity,
  FleetMinute,
  FleetStats,
  FunctionMinute,
  FunctionStats,
  HealthCheckItem,
  HealthResult,
  InvalidationMark,
  KeyExplanation,
  OperationMetrics,
  ProcessStats,
  StateChange,
} from "./core/stats.ts";
export { type Explanation, explain } from "./db/explain.ts";
export { tableTag } from "./db/tracking/table-tags.ts";
export {
  asCached,
  type CacheControls,
  type Cached,
  type CachedOptions,
  type CacheForFunctions,
  cached,
  type WarmOptions,
} from "./functions/cached.ts";
export { setDefaultCache } from "./functions/default-cache.ts";
export type { CachedDependency, DependencyOptions } from "./functions/dependency.ts";
export { CacheMetrics, NoOpCollector } from "./metrics/collectors/cache-metrics.ts";
export type { CollectorFailures, FailureReason } from "./metrics/collectors/guarded-collector.ts";
export { OtelCollector, type OtelCollectorOptions } from "./metrics/opentelemetry/otel.ts";
export type { OtelMeterProvider, OtelTracerProvider } from "./metrics/opentelemetry/otel-api.ts";
export { type SpanOptions, traceWithOpenTelemetry } from "./metrics/opentelemetry/spans.ts";
export type { EndpointAddress } from "./metrics/prometheus/endpoint.ts";
export { PullCollector, type PullCollectorOptions } from "./metrics/prometheus/pull.ts";
export type { MetricRegistry } from "./metrics/prometheus/registry.ts";
export { PushCollector, type PushCollectorOptions } from "./metrics/statsd/push.ts";
export type { TraceContext, TraceDetails } from "./metrics/tracing.ts";
export type { FuzzyMatch, FuzzyOptions } from "./search/fuzzy.ts";
export { VERSION } from "./version.ts";
export { type ScanOptions, XCache } from "./xcache.ts";
