/* What one run loaded becomes part of its program's list of images. */
#pragma once

#include "profile/images.h"

/* This run's images and kernels in the order in which it asked, then what only earlier runs asked
 * for, while it is not too old. A file is the same by its identity, wherever it lies; an image by
 * its place in it, or by its content, and by how it was loaded. With `is_new_run` what was not
 * asked for is a run older than before. `old` is NULL where there is no list. Pure. */
void images_merge(const struct images *old, const struct images_draft *seen, bool is_new_run,
	struct images_draft *ret_merged);

/* Reads the program's profile, the user's or else the one that an image ships (system_folder may be
 * NULL), merges, and writes the user's where that changes it; begins again where another writer
 * came between. 0 also where there was nothing to change; PROFILE_NONE where the program has no
 * profile yet; or a negative errno. Maps scratch memory; changes errno. */
int images_learn(const char *folder, const char *system_folder, const struct identity *identity,
	uint64_t key, const struct images_draft *seen, bool is_new_run);
