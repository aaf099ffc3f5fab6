/* Profiles for people: loading all of a folder, choosing among them, tables and JSON. For tools;
 * allocates. */
#pragma once

#include "profile/profile.h"

#include <jansson.h>
#include <stdio.h>

#define PROFILES_ID_SIZE (DIGEST_SIZE + 1) /* the file's name, 32 hexadecimal digits */
#define PROFILES_PREFIX_MIN 4              /* digits that name a program */

struct profiles_entry {
	struct profile profile;
	char id[PROFILES_ID_SIZE];
	bool is_system; /* out of the read-only folder: an image's */
	/* Its images, once profiles_read_images was called; else data is NULL. */
	struct profile_extension extension;
};

struct profiles {
	struct profiles_entry *entries; /* the latest learned first */
	size_t count;
	size_t damaged; /* files that count as none */
};

/* Adds a folder's profiles; a missing folder is empty. A program that is there already (the user's
 * own comes first) is left as it is. 0 or a negative errno. */
int profiles_load(const char *folder, bool is_system, struct profiles *profiles);

/* Keeps those that `what` names: a base name, or at least four digits of an id. Returns how many.
 */
size_t profiles_choose(struct profiles *profiles, const char *what);

/* Reads what each of them loads. `folder` is the user's. 0 or a negative errno. */
int profiles_read_images(const char *folder, struct profiles *profiles);

void profiles_done(struct profiles *profiles);

/* One line for each. */
void profiles_print_list(const struct profiles *profiles, FILE *to);

/* All that is known of one. */
void profiles_print(const struct profiles_entry *entry, FILE *to);

/* {"profiles":[...],"damaged":N}; NULL without memory. */
json_t *profiles_json(const struct profiles *profiles);
