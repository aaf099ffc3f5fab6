/* Lookups in the generated tables. Runs anywhere, in the user's process inside cuGetProcAddress;
 * must never lock or allocate. */
#include "driver/tables.h"

#include "driver/abi.h"

#include <stdbool.h>
#include <string.h>

enum driver_row tables_find_symbol(const char *symbol)
{
	size_t low = 0, high = DRIVER_ROWS;

	while (low < high) {
		size_t middle = (low + high) / 2;
		enum driver_row row = (enum driver_row)driver_by_symbol[middle];
		int order = strcmp(symbol, tables_symbol(row));

		if (!order)
			return row;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return DRIVER_ROWS;
}

size_t tables_find_public(const char *name, const uint16_t **ret_rows)
{
	size_t low = 0, high = driver_public_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(name, driver_names + driver_public_offsets[middle]);

		if (!order) {
			*ret_rows = driver_public_rows + driver_public_first[middle];
			return (size_t)(driver_public_first[middle + 1] -
					driver_public_first[middle]);
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return 0;
}

enum driver_row tables_find_request(const char *name, int version, uint64_t flags)
{
	bool is_per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const uint16_t *rows;
	size_t count = tables_find_public(name, &rows);

	for (size_t i = 0; i < count; i++)
		if (driver_since[rows[i]] <= version &&
			(is_per_thread || !driver_per_thread[rows[i]]))
			return (enum driver_row)rows[i];
	return DRIVER_ROWS;
}
