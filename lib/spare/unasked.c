/* Keeping spares unasked. Runs in `hearth run`, which has one thread and is about to become the
 * program. */
#include "spare/unasked.h"

#include "spare/budget.h"
#include "spare/folder.h"
#include "spare/hold.h"
#include "spare/kind.h"
#include "spare/learned.h"
#include "spare/whose.h"

#include <unistd.h>

void unasked_find(
	const struct command_line *line, const struct text *kind, struct unasked *ret_unasked)
{
	struct unasked unasked = {0};

	if (learned_path(line, unasked.path))
		unasked.path[0] = '\0';
	text_add(&unasked.kind, kind->bytes, kind->size);
	text_add_word(&unasked.kind, "kept");
	text_add_word(&unasked.kind, unasked.path);
	if (unasked.kind.rc)
		unasked.path[0] = '\0';
	*ret_unasked = unasked;
}

void unasked_begin(const struct command_line *line, const struct settings *settings,
	const struct unasked *unasked)
{
	static char *none[] = {NULL};
	struct budget budget;
	struct learned learned;
	struct spare_plan plan = {.python = line->python,
		.flags = line->flags,
		.flag_count = line->flag_count,
		.imports = none,
		.environment = environ,
		.kind = unasked->kind.bytes,
		.kind_size = unasked->kind.size,
		.parent_fd = -1,
		.is_auto = true,
		.learned = unasked->path,
		.page = {.device = -1, .is_named = true}};
	bool is_never;

	if (!unasked->path[0] || learned_count(unasked->path) < LEARNED_RUNS ||
		folder_has(kind_digest(&unasked->kind)) || learned_read(unasked->path, &learned))
		return;
	is_never = learned.is_never;
	learned_done(&learned);
	budget_read(BUDGET_FILE, settings, &budget);
	if (is_never || !budget.is_allowed || budget_is_short(BUDGET_MEMINFO))
		return;
	plan.idle_s = budget.idle_s;
	whose_profile(line, none, &plan.page.identity);
	hold_start(&plan, -1);
}

void unasked_done(struct unasked *unasked)
{
	text_done(&unasked->kind);
}
