// The functions of MySQL and MariaDB. The application's own cannot take the place of one that is called by its bare name.
import type { CallKind } from "./sql-functions.ts";

/** Words that can precede a parenthesis without calling anything. */
const NOT_CALLS = `
  against all and any as between bigint binary bit by case char character check columns cross date datetime dec decimal
  default distinct div double else end except exists float force from group having ignore in index inner int integer
  intersect interval into is join key lateral left like limit match mediumint mod natural not nchar numeric on or order
  outer over partition real recursive regexp returning right rlike row select set smallint some straight_join table then
  time timestamp tinyint to union unique use using values varbinary varchar when where window with xor year`;

/** Deterministic: the same arguments and rows give the same result under the settings that are part of every key. */
const PLAIN = `
  count sum avg min max std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor group_concat
  json_arrayagg json_objectagg any_value median percentile_cont percentile_disc grouping
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  coalesce if ifnull isnull nullif nvl nvl2 greatest least cast convert charset collation coercibility
  abs acos asin atan atan2 ceil ceiling conv cos cot crc32 crc32c degrees exp floor ln log log10 log2 oct pi pow power
  radians round sign sin sqrt tan truncate bin hex unhex bit_count
  ascii bit_length char_length character_length chr concat concat_ws elt export_set field find_in_set format from_base64
  initcap insert instr lcase length lengthb locate lower lpad ltrim make_set mid natural_sort_key octet_length ord position
  quote repeat replace reverse rpad rtrim sformat soundex space strcmp substr substring substring_index to_base64 to_char
  trim ucase upper weight_string regexp_instr regexp_like regexp_replace regexp_substr
  adddate addtime convert_tz date_add date_format date_sub datediff day dayname dayofmonth dayofweek dayofyear extract
  from_days from_unixtime get_format hour last_day makedate maketime microsecond minute month monthname period_add
  period_diff quarter sec_to_time second str_to_date subdate subtime time_format time_to_sec timediff timestampadd
  timestampdiff to_days to_seconds unix_timestamp week weekday weekofyear yearweek
  column_add column_check column_create column_delete column_exists column_get column_json column_list
  aes_decrypt aes_encrypt compress md5 sha sha1 sha2 uncompress uncompressed_length
  inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_uuid uuid_to_bin bin_to_uuid
  json_array json_array_append json_array_insert json_array_intersect json_compact json_contains json_contains_path
  json_depth json_detailed json_equals json_exists json_extract json_insert json_key_value json_keys json_length
  json_loose json_merge json_merge_patch json_merge_preserve json_normalize json_object json_object_filter_keys
  json_object_to_array json_overlaps json_pretty json_query json_quote json_remove json_replace json_schema_valid
  json_search json_set json_storage_size json_table json_type json_unquote json_valid json_value extractvalue updatexml
  st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_boundary st_buffer st_centroid st_contains
  st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance st_distance_sphere st_endpoint st_envelope
  st_equals st_exteriorring st_geometryn st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb
  st_interiorringn st_intersection st_intersects st_isclosed st_isempty st_isring st_issimple st_isvalid st_latitude
  st_length st_longitude st_makeenvelope st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromtext
  st_pointn st_polygonfromtext st_simplify st_srid st_startpoint st_symdifference st_touches st_transform st_union
  st_within st_x st_y mbrcontains mbrdisjoint mbrequal mbrintersects mbroverlaps mbrtouches mbrwithin geometrycollection
  linestring multilinestring multipoint multipolygon point polygon vec_distance vec_distance_cosine
  vec_distance_euclidean vec_fromtext vec_totext`;

/** Not deterministic, or dependent on the session, but without effect on any table. */
const VOLATILE = `
  now sysdate curdate curtime current_date current_time current_timestamp localtime localtimestamp utc_date utc_time
  utc_timestamp rand random_bytes uuid uuid_short uuid_v4 uuid_v7 sys_guid sleep benchmark
  last_insert_id row_count found_rows rownum connection_id database schema user session_user system_user current_user
  current_role version load_file password old_password encrypt nextval lastval setval
  release_lock release_all_locks is_free_lock is_used_lock master_pos_wait master_gtid_wait
  wait_for_executed_gtid_set gtid_subset gtid_subtract ps_current_thread_id`;

const kindsOf = (words: string, kind: CallKind): [string, CallKind][] =>
  words
    .trim()
    .split(/\s+/)
    .map((word) => [word, kind]);

const KINDS = new Map<string, CallKind>([
  ...kindsOf(VOLATILE, "volatile"),
  ...kindsOf(PLAIN, "plain"),
  ...kindsOf(NOT_CALLS, "none"),
  // Held until it is released, or the connection ends.
  ["get_lock", "hold"],
]);

/** `schema`: the qualifier before the dot. `hasArguments`: without any, some return the current time. */
export function mysqlCallKind(name: string, schema: string | undefined, hasArguments: boolean): CallKind {
  if (schema !== undefined) return "unknown";
  if (name === "unix_timestamp" && !hasArguments) return "volatile";
  return KINDS.get(name) ?? "unknown";
}

/** `sql_calc_found_rows` leaves a number for the next statement, and `sql_no_cache` asks for no cache. */
const VOLATILE_WORD =
  /^(current_(date|time|timestamp|user|role)|localtime|localtimestamp|utc_\w+|sql_calc_found_rows|sql_no_cache)$/;

/** Words that call a function without parentheses, or ask for something that no cache has. */
export const isVolatileMysqlWord = (word: string): boolean => VOLATILE_WORD.test(word);
