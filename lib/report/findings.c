/* The list of findings and how people see it. Runs in the hearth tool. */
#include "report/findings.h"

#include "base/array.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const severity_names[] = {
	[SEVERITY_OK] = "ok",
	[SEVERITY_NOTE] = "note",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_PROBLEM] = "problem",
};

const char *severity_name(enum severity severity)
{
	return severity_names[severity];
}

void findings_add(
	struct findings *findings, const char *id, enum severity severity, const char *format, ...)
{
	struct finding *items;
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	items = text ? array_resize(findings->items, findings->count + 1, sizeof(*items)) : NULL;
	if (!items) {
		free(text);
		findings->is_short = true;
		return;
	}
	items[findings->count++] = (struct finding){.id = id, .severity = severity, .text = text};
	findings->items = items;
}

void findings_remedy(struct findings *findings, const char *format, ...)
{
	struct finding *last = findings->count ? &findings->items[findings->count - 1] : NULL;
	va_list arguments;

	if (!last || findings->is_short)
		return;
	free(last->remedy);
	va_start(arguments, format);
	if (vasprintf(&last->remedy, format, arguments) < 0) {
		last->remedy = NULL;
		findings->is_short = true;
	}
	va_end(arguments);
}

const struct finding *findings_get(const struct findings *findings, const char *id)
{
	for (size_t i = 0; i < findings->count; i++)
		if (!strcmp(findings->items[i].id, id))
			return &findings->items[i];
	return NULL;
}

enum severity findings_worst(const struct findings *findings)
{
	enum severity worst = SEVERITY_OK;

	for (size_t i = 0; i < findings->count; i++)
		if (findings->items[i].severity > worst)
			worst = findings->items[i].severity;
	return worst;
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		free(findings->items[i].text);
		free(findings->items[i].remedy);
	}
	free(findings->items);
	*findings = (struct findings){0};
}

/* Text may hold names of files and programs: what is not printable stays off the terminal. */
static void print_safe(const char *text, FILE *out)
{
	while (*text) {
		uint32_t rune = 0;
		size_t length = utf8_next(text, strnlen(text, UTF8_MAX), &rune);

		if (length && utf8_is_harmless(rune))
			fwrite(text, 1, length, out);
		else
			fputc('?', out);
		text += length ? length : 1;
	}
}

void findings_print(const struct findings *findings, FILE *out)
{
	const int severity_width = (int)strlen(severity_names[SEVERITY_PROBLEM]);
	int width = 0;

	for (size_t i = 0; i < findings->count; i++)
		if ((int)strlen(findings->items[i].id) > width)
			width = (int)strlen(findings->items[i].id);
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		fprintf(out, "%-*s  %-*s  ", severity_width, severity_name(finding->severity),
			width, finding->id);
		print_safe(finding->text, out);
		fputc('\n', out);
		if (!finding->remedy)
			continue;
		fprintf(out, "%*s-> ", severity_width + width + 4, "");
		print_safe(finding->remedy, out);
		fputc('\n', out);
	}
	if (findings->is_short)
		fputs("memory ran out: some findings are missing\n", out);
}

void findings_print_warnings(const struct findings *findings, FILE *out)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (finding->severity < SEVERITY_WARNING)
			continue;
		fputs("warning: ", out);
		print_safe(finding->text, out);
		fputc('\n', out);
		if (!finding->remedy)
			continue;
		fputs("  remedy: ", out);
		print_safe(finding->remedy, out);
		fputc('\n', out);
	}
}
