/* What happened at a program's first CUDA calls, in one sentence. Runs in the tools. Must never add
 * up figures of different devices, nor claim a gain that no record shows. */
#include "report/figure.h"
#include "report/show.h"

#include <stdlib.h>
#include <string.h>

static const struct run_record *find(const struct run *run, enum run_kind kind)
{
	for (size_t i = 0; i < run->count; i++)
		if (run_record_kind(&run->records[i]) == kind)
			return &run->records[i];
	return NULL;
}

static void say_how(FILE *to, const struct run_record *record)
{
	char time[FIGURE_SIZE];

	figure_time(record->hidden_us, time);
	if (record->rc)
		fprintf(to, " (failed with %d)", record->rc);
	else if (!strcmp(record->how, "warm") && record->hidden_us)
		fprintf(to, " (warm: the keeper saved about %s)", time);
	else if (record->hidden_us)
		fprintf(to, " (%s: %s done ahead)", record->how, time);
	else
		fprintf(to, " (%s)", record->how);
}

/* ", " between parts; nothing before the first. */
static void separate(FILE *to, bool *is_first)
{
	if (!*is_first)
		fputs(", ", to);
	*is_first = false;
}

static bool is_first_of_device(const struct run *run, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (run->records[i].device == run->records[at].device &&
			run_record_kind(&run->records[i]) == run_record_kind(&run->records[at]))
			return false;
	return true;
}

static size_t count_jit(const struct run *run, int device)
{
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++)
		count += run->records[i].device == device &&
			 run_record_kind(&run->records[i]) == RUN_LIBRARY &&
			 !strcmp(run->records[i].how, "jit");
	return count;
}

static size_t count_devices(const struct run *run, enum run_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++)
		count += run_record_kind(&run->records[i]) == kind && is_first_of_device(run, i);
	return count;
}

/* "context 115 ms", or one part per device: "context on device 1 120 ms". */
static void say_contexts(FILE *to, const struct run *run, bool *is_first)
{
	bool is_several = count_devices(run, RUN_CONTEXT) > 1;
	char time[FIGURE_SIZE];

	for (size_t i = 0; i < run->count; i++) {
		const struct run_record *record = &run->records[i];

		if (run_record_kind(record) != RUN_CONTEXT)
			continue;
		separate(to, is_first);
		fputs("context", to);
		if (is_several)
			fprintf(to, " on device %d", record->device);
		fprintf(to, " %s", figure_time(record->visible_us, time));
		if (record->rc || strcmp(record->how, "cold"))
			say_how(to, record);
	}
}

static void say_libraries(FILE *to, const struct run *run, bool *is_first)
{
	bool is_several = count_devices(run, RUN_LIBRARY) > 1;
	char time[FIGURE_SIZE];

	for (size_t i = 0; i < run->count; i++) {
		int device = run->records[i].device;
		size_t count, jit = count_jit(run, device);
		uint64_t sum;

		if (run_record_kind(&run->records[i]) != RUN_LIBRARY || !is_first_of_device(run, i))
			continue;
		sum = run_sum(run, RUN_LIBRARY, device, &count);
		separate(to, is_first);
		fprintf(to, "%zu %s", count, count == 1 ? "library" : "libraries");
		if (is_several)
			fprintf(to, " on device %d", device);
		fprintf(to, " %s", figure_time(sum, time));
		if (jit)
			fprintf(to, " (%zu compiled from PTX)", jit);
	}
}

static void say(FILE *to, const struct run *run)
{
	const struct run_record *init = find(run, RUN_INIT);
	uint64_t listed = 0, waited = run_waited(run);
	char time[FIGURE_SIZE];
	bool is_first = true;

	if (!run->count) {
		fprintf(to, "no first CUDA call was recorded");
		return;
	}
	if (init) {
		separate(to, &is_first);
		fprintf(to, "cuInit %s", figure_time(init->visible_us, time));
		say_how(to, init);
	}
	say_contexts(to, run, &is_first);
	say_libraries(to, run, &is_first);
	for (size_t i = 0; i < run->count; i++) {
		enum run_kind kind = run_record_kind(&run->records[i]);

		if (kind != RUN_OTHER && (kind != RUN_INIT || &run->records[i] == init))
			listed += run->records[i].visible_us;
	}
	if (waited > listed) {
		separate(to, &is_first);
		fprintf(to, "other first calls %s", figure_time(waited - listed, time));
	}
}

char *show_sentence(const struct run *run)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	say(to, run);
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}
