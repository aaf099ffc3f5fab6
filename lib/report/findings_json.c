/* Findings for scripts. Runs in the hearth tool. */
#include "base/json_out.h"
#include "report/findings.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE (16u << 10)
#define LAST_SIZE (16u << 20)

static int write_into(const struct findings *findings, const char *command, bool is_intercepted,
	char *buffer, size_t size, size_t *ret_length)
{
	struct json_out json;

	json_out_begin(&json, buffer, size);
	json_out_object_begin(&json, NULL);
	json_out_u64(&json, "v", 1);
	if (command) {
		json_out_string(&json, "command", command);
		json_out_bool(&json, "intercepted", is_intercepted);
	} else {
		json_out_null(&json, "command");
		json_out_null(&json, "intercepted");
	}
	json_out_string(&json, "worst", severity_name(findings_worst(findings)));
	json_out_array_begin(&json, "findings");
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		json_out_object_begin(&json, NULL);
		json_out_string(&json, "id", finding->id);
		json_out_string(&json, "severity", severity_name(finding->severity));
		json_out_string(&json, "text", finding->text);
		if (finding->remedy)
			json_out_string(&json, "remedy", finding->remedy);
		else
			json_out_null(&json, "remedy");
		json_out_object_end(&json);
	}
	json_out_array_end(&json);
	json_out_object_end(&json);
	json_out_newline(&json);
	return json_out_end(&json, ret_length);
}

int findings_print_json(
	const struct findings *findings, const char *command, bool is_intercepted, FILE *out)
{
	for (size_t size = FIRST_SIZE; size <= LAST_SIZE; size *= 2) {
		char *buffer = malloc(size);
		size_t length = 0;
		int rc = buffer ? write_into(
					  findings, command, is_intercepted, buffer, size, &length)
				: -ENOMEM;

		if (!rc)
			fwrite(buffer, 1, length, out);
		free(buffer);
		if (rc != -ENOBUFS)
			return rc;
	}
	return -ENOMEM;
}
