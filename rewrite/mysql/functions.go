package mysql

import "strings"

// nativeFunctions are MariaDB's own functions, in lower case (information_schema.SQL_FUNCTIONS of
// 10.11, the ones that have their own grammar, and the names that TiDB's parser gives to some of
// these). Any other call may be a stored function, which can read and write what it likes.
var nativeFunctions = set(`
	abs acos add_months adddate addtime aes_decrypt aes_encrypt any_value ascii asin atan atan2 avg benchmark bin
	binlog_gtid_pos bit_and bit_count bit_length bit_or bit_xor cast ceil ceiling char char_func char_length
	character_length charset chr coalesce coercibility collation column_add column_check column_create
	column_delete column_exists column_get column_json column_list compress concat concat_ws connection_id
	contains conv convert convert_tz cos cot count crc32 crc32c cume_dist curdate current_date current_role
	current_time current_timestamp current_user curtime database date date_add date_format date_sub datediff day
	dayname dayofmonth dayofweek dayofyear decode decode_histogram default default_func degrees dense_rank
	des_decrypt des_encrypt elt encode encrypt exp export_set extract extractvalue field find_in_set first_value
	floor format found_rows from_base64 from_days from_unixtime get_format get_lock getvar greatest group_concat
	hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert insert_func instr interval is_free_lock
	is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_used_lock isnull json_array json_array_append
	json_array_insert json_arrayagg json_compact json_contains json_contains_path json_depth json_detailed
	json_equals json_exists json_extract json_insert json_keys json_length json_loose json_merge json_merge_patch
	json_merge_preserve json_normalize json_object json_objectagg json_overlaps json_pretty json_query json_quote
	json_remove json_replace json_search json_set json_type json_unquote json_valid json_value lag last_day
	last_insert_id last_value lastval lcase lead least left length lengthb ln load_file localtime localtimestamp
	locate log log10 log2 lower lpad ltrim make_set makedate maketime master_gtid_wait master_pos_wait match max
	md5 median microsecond mid min minute mod month monthname name_const natural_sort_key nextval now nth_value
	ntile nullif nvl nvl2 oct octet_length old_password ord password percent_rank percentile_cont percentile_disc
	period_add period_diff pi point position pow power quarter quote radians rand random_bytes rank regexp_instr
	regexp_replace regexp_substr release_all_locks release_lock repeat replace reverse right round row row_count
	row_number rpad rtrim schema schemas sec_to_time second session_user setval setvar sformat sha sha1 sha2 sign
	sin sleep soundex space sqrt st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_boundary
	st_buffer st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance
	st_distance_sphere st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext st_geometryfromtext
	st_geometryn st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn
	st_intersection st_intersects st_isclosed st_isempty st_isring st_issimple st_length st_linefromtext
	st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromtext st_pointn st_pointonsurface
	st_polyfromtext st_relate st_srid st_startpoint st_symdifference st_touches st_union st_within st_x st_y std
	stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring substring_index subtime sum sys_guid
	sysdate system_user tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64
	to_char to_days to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml
	upper user utc_date utc_time utc_timestamp uuid uuid_short value values var_pop var_samp variance version week
	weekday weekofyear weight_string wsrep_last_seen_gtid wsrep_last_written_gtid wsrep_sync_wait_upto_gtid year
	yearweek
`)

// beforeParenthesis are words that may stand before a parenthesis without being a function's name.
var beforeParenthesis = set(`
	all and any as between binary by case decimal distinct div double else escape exists float having in int integer
	is like limit not nchar numeric on or over regexp rlike set signed some sounds then unsigned using varchar when
	where xor
`)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
