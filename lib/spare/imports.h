/* A spare's modules, as users list them. */
#pragma once

#define IMPORTS_MOST 64

/* Splits "MODULE,...": `ret_names` ends with NULL and points into memory that stays. 0; -EINVAL for
 * an empty name or one that begins with '-', -E2BIG for too many, -ENOMEM. NULL and "" are none. */
int imports_split(const char *list, char *ret_names[IMPORTS_MOST + 1]);
