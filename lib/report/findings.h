/* What was found by who looked for what is wrong, in the order in which it looked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum severity { SEVERITY_OK, SEVERITY_NOTE, SEVERITY_WARNING, SEVERITY_PROBLEM };

struct finding {
	const char *id; /* a constant word that tests and scripts can rely on */
	enum severity severity;
	char *text;
	char *remedy; /* what to do about it, or NULL */
};

struct findings {
	struct finding *items;
	size_t count;
	bool is_short; /* memory ran out: something is missing from the list */
};

__attribute__((format(printf, 4, 5))) void findings_add(
	struct findings *findings, const char *id, enum severity severity, const char *format, ...);

/* Sets the remedy of the finding added last. */
__attribute__((format(printf, 2, 3))) void findings_remedy(
	struct findings *findings, const char *format, ...);

/* The first finding of that id, or NULL. */
const struct finding *findings_get(const struct findings *findings, const char *id);

enum severity findings_worst(const struct findings *findings);
const char *severity_name(enum severity severity);
void findings_done(struct findings *findings);

/* Aligned lines for people: severity, id, text; a remedy on a line of its own. */
void findings_print(const struct findings *findings, FILE *out);

/* "warning: TEXT", and "  remedy: TEXT" below it, for each finding that is a warning or worse. */
void findings_print_warnings(const struct findings *findings, FILE *out);

/* All as one JSON object on one line: {"v":1,"command":...,"intercepted":...,"worst":...,
 * "findings":[{"id","severity","text","remedy"}]}. command NULL: there was none, and "intercepted"
 * is null. Returns 0 or -ENOMEM. */
int findings_print_json(
	const struct findings *findings, const char *command, bool is_intercepted, FILE *out);
