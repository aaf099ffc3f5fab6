/* The driver's private table that NVML asks for, before the program's first call where the program
 * has asked NVML first. */
#pragma once

#include <stdbool.h>

/* Is this 16-byte id that table's? */
bool export_table_is_shared(const void *id);

/* A copy of the table whose functions lead to whatever copy of the driver is the driver at that
 * time: NULL where it is not such a table, or where there are no stubs left for it. The same one
 * each time; it stays as long as the process. */
const void *export_table_copy(const void *table);
