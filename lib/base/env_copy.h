/* A copy of the environment that can be taken beside another thread's setenv.
 *
 * setenv moves and frees what environ points to, so reading it there can fault (getenv's own race).
 * This copy is read by system call, which answers EFAULT instead: a torn entry may be missing or
 * odd in it, but nothing crashes. Where the kernel or a sandbox refuses that call it is read
 * plainly. */
#pragma once

#include <stddef.h>

struct env_copy {
	char **entries; /* "NAME=VALUE", NULL-terminated */
	size_t size;    /* of the mapping that holds it all */
};

/* Takes a copy of environ. 0, -ENOMEM, or -E2BIG for more than ENV_COPY_ENTRIES entries or
 * ENV_COPY_BYTES of text. */
#define ENV_COPY_ENTRIES 32768
#define ENV_COPY_BYTES (4u << 20)
int env_copy_take(struct env_copy *ret_copy);

/* Unmaps it. */
void env_copy_drop(struct env_copy *copy);

/* The value of `name` in a copy, also an empty one; NULL where it is not set. */
const char *env_copy_find(char *const *entries, const char *name);
