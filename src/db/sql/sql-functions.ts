// What the functions called in a statement may do. A function on no list may do anything.
import type { SqlDialect } from "./sql-tokens.ts";

/** Words that can precede a parenthesis, and that cannot name a function unless they are quoted. */
const NOT_CALLS = `
  all and any array as between case check distinct do else end except exists from group grouping having in inner
  intersect interval into lateral limit not offset on only or order returning row select some table then to union using
  values when where window with
  bigint bit char character decimal dec float integer int numeric real smallint time timestamp varchar precision`;

/** Words of SQL, and types, that may precede a parenthesis without calling anything, and that may also name a function. */
const MAY_CALL = `
  by conflict cross cube filter full ilike insert is isnull join key left like match materialized natural nothing notnull
  outer over overlaps partition recursive right rollup set sets similar unbounded within without zone excluded
  bpchar bytea date double json jsonb text timestamptz timetz varbit varying vector halfvec`;

/** Deterministic: the same arguments and rows give the same result under the settings that are part of every key. */
const PLAIN = `
  count sum avg min max array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg bool_and bool_or every
  any_value bit_and bit_or bit_xor corr covar_pop covar_samp regr_slope regr_intercept stddev stddev_pop stddev_samp
  variance var_pop var_samp mode percentile_cont percentile_disc range_agg
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  coalesce nullif greatest least cast num_nulls num_nonnulls
  lower upper length char_length character_length octet_length bit_length substring substr trim ltrim rtrim btrim
  replace concat concat_ws lpad rpad position strpos split_part initcap reverse repeat translate overlay
  md5 sha224 sha256 sha384 sha512 encode decode ascii chr format to_char to_date to_number to_timestamp starts_with
  regexp_replace regexp_match regexp_matches regexp_split_to_array regexp_split_to_table regexp_count regexp_like
  regexp_substr string_to_array string_to_table array_to_string quote_ident quote_literal quote_nullable normalize
  unaccent abs ceil ceiling floor round trunc mod div power pow sqrt cbrt exp ln log log10 sign degrees radians pi sin
  cos tan asin acos atan atan2 cot gcd lcm width_bucket
  extract date_part date_trunc date_bin make_date make_time make_timestamp make_timestamptz make_interval justify_days
  justify_hours justify_interval isfinite timezone
  array_length array_upper array_lower array_ndims array_dims array_append array_prepend array_cat array_remove
  array_replace array_position array_positions array_fill cardinality unnest generate_series generate_subscripts
  json_build_object jsonb_build_object json_build_array jsonb_build_array json_object jsonb_object to_json to_jsonb
  row_to_json array_to_json json_extract_path json_extract_path_text jsonb_extract_path jsonb_extract_path_text
  json_array_length jsonb_array_length json_array_elements jsonb_array_elements json_array_elements_text
  jsonb_array_elements_text json_each jsonb_each json_each_text jsonb_each_text json_object_keys jsonb_object_keys
  json_typeof jsonb_typeof jsonb_set jsonb_insert json_strip_nulls jsonb_strip_nulls jsonb_pretty jsonb_path_exists
  jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_path_match json_to_record jsonb_to_record
  json_to_recordset jsonb_to_recordset
  to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline
  setweight numnode querytree tsvector_to_array array_to_tsvector
  isempty lower_inc upper_inc lower_inf upper_inf range_merge int4range int8range numrange tsrange tstzrange daterange
  similarity word_similarity strict_word_similarity
  host hostmask masklen netmask network broadcast family abbrev`;

/** Deterministic in SQLite; in another database a function of this name is the application's own. */
const PLAIN_IN_SQLITE = `
  group_concat total ifnull iif instr printf hex typeof unicode char glob json_extract json_valid json_type json_array
  json_group_array json_group_object zeroblob unhex`;

/** Not deterministic, or dependent on the session, but without effect on any table. */
const VOLATILE = `
  now clock_timestamp statement_timestamp transaction_timestamp timeofday age random random_normal setseed
  gen_random_uuid uuid_generate_v1 uuid_generate_v1mc uuid_generate_v4 uuidv4 uuidv7 gen_random_bytes
  nextval currval lastval setval pg_sleep pg_sleep_for pg_sleep_until current_setting version pg_backend_pid
  pg_current_xact_id pg_current_xact_id_if_assigned pg_current_snapshot txid_current pg_notify pg_is_in_recovery
  pg_postmaster_start_time current_schema current_schemas current_database inet_client_addr inet_server_addr
  has_table_privilege has_schema_privilege has_column_privilege has_database_privilege pg_has_role
  pg_table_is_visible pg_get_expr pg_get_indexdef pg_get_constraintdef pg_get_viewdef pg_get_userbyid
  pg_get_serial_sequence pg_relation_size pg_total_relation_size pg_table_size pg_database_size pg_size_pretty
  obj_description col_description format_type to_regclass pg_typeof pg_control_system crypt gen_salt
  datetime julianday strftime unixepoch timediff randomblob changes total_changes last_insert_rowid
  sqlite_version`;

/** The caller holds a lock until its transaction or session ends, and must not read older data from the cache meanwhile. */
const LOCKING = /^pg_(try_)?advisory_(xact_)?/;

/** What a call means for the statement that contains it. */
export type CallKind = "none" | "plain" | "volatile" | "lock" | "hold" | "setting" | "unknown";

/** A function that a statement calls. */
export interface Call {
  readonly name: string;
  readonly kind: Extract<CallKind, "plain" | "volatile" | "unknown">;
}

function listOf(words: string, kind: CallKind): [string, CallKind][] {
  return words
    .trim()
    .split(/\s+/)
    .map((word) => [word, kind]);
}

const KINDS = new Map<string, CallKind>([
  ...listOf(VOLATILE, "volatile"),
  ...listOf(PLAIN, "plain"),
  ...listOf(MAY_CALL, "plain"),
  ...listOf(NOT_CALLS, "none"),
  ["set_config", "setting"],
]);

const SQLITE_KINDS = new Map<string, CallKind>([...listOf(PLAIN_IN_SQLITE, "plain"), ...KINDS]);

/** In SQLite these are functions, which return the current time if called without an argument. */
const SQLITE_CALLS: ReadonlySet<string> = new Set(["date", "time"]);

/** `schema`: the qualifier before the dot. */
export function callKind(name: string, schema: string | undefined, dialect: SqlDialect): CallKind {
  if (schema !== undefined && schema !== "pg_catalog") return "unknown";
  if (dialect === "sqlite" && SQLITE_CALLS.has(name)) return "volatile";
  const locking = LOCKING.exec(name);
  if (locking !== null) return locking[2] === undefined ? "hold" : "lock";
  return (dialect === "sqlite" ? SQLITE_KINDS : KINDS).get(name) ?? "unknown";
}

const VOLATILE_WORD = /^(current_\w+|localtime|localtimestamp)$/;
const POSTGRES_USER = /^(user|session_user|system_user)$/;

/** Words that call a function without parentheses. */
export function isVolatileWord(word: string, dialect: SqlDialect): boolean {
  return VOLATILE_WORD.test(word) || (dialect === "postgres" && POSTGRES_USER.test(word));
}

const CHANGING_TEXT = /\b(now|today|tomorrow|yesterday)\b/i;

/** An escape that may stand for a letter. */
const ESCAPED_LETTER = /\\[0-9a-z]/i;

/** As `mayDenoteNow`, for a literal: whether its escapes count depends on its kind and on a setting. */
export const mayLiteralDenoteNow = (text: string): boolean => mayDenoteNow(text) || ESCAPED_LETTER.test(text);

/** Whether a literal or a value may denote the current time, as in `'today'::date`. */
export function mayDenoteNow(text: string): boolean {
  return CHANGING_TEXT.test(text);
}
