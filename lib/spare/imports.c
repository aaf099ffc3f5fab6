/* Lists of modules. Runs in `hearth spare start` and `hearth run --spare`. */
#include "spare/imports.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

int imports_split(const char *list, char *ret_names[IMPORTS_MOST + 1])
{
	char *rest = list && *list ? strdup(list) : NULL, *name;
	size_t count = 0;

	if (list && *list && !rest)
		return -ENOMEM;
	while (rest && (name = strsep(&rest, ","))) {
		if (!*name || *name == '-')
			return -EINVAL;
		if (count == IMPORTS_MOST)
			return -E2BIG;
		ret_names[count++] = name;
	}
	ret_names[count] = NULL;
	return 0;
}
