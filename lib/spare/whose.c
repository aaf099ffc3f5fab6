/* The identity of what a spare will run. Runs in the tools; relative paths are meant from the
 * working folder. */
#include "spare/whose.h"

#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void of_the_kind(
	const struct command_line *line, char *const *imports, struct identity *ret_identity)
{
	struct identity identity = {.kind = IDENTITY_TEXT};
	struct digest_state state;
	const char *slash = strrchr(line->python, '/');

	digest_init(&state);
	digest_text(&state, "hearth spare 1");
	digest_text(&state, line->python);
	for (int i = 0; i < line->flag_count; i++)
		digest_text(&state, line->flags[i]);
	digest_text(&state, "");
	for (; *imports; imports++)
		digest_text(&state, *imports);
	digest_final(&state, identity.digest);
	snprintf(identity.name, sizeof(identity.name), "%.48s (spare)", slash + 1);
	*ret_identity = identity;
}

void whose_profile(
	const struct command_line *line, char *const *imports, struct identity *ret_identity)
{
	struct identity_source source = {.argv = (const char *const *)line->words,
		.notebook = env_get(ENV_JPY_SESSION_NAME)};
	char *real = realpath(line->python, NULL);

	if (line->kind == COMMAND_LINE_NONE || !real) {
		of_the_kind(line, imports, ret_identity);
	} else {
		while (line->words[source.argc])
			source.argc++;
		source.executable = real;
		identity_compute(&source, ret_identity);
	}
	free(real);
}
