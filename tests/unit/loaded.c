/* Loaded objects: what the loader says of them and what we read in their memory is the same. */
#include "driver/loaded.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

static void *libc_handle(void)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	cr_assert(handle);
	return handle;
}

Test(loaded, symbols_are_those_of_dlsym)
{
	static const char *const names[] = {"getpid", "qsort", "environ", "write", "fopen"};
	struct loaded object;

	cr_assert_eq(loaded_find("libc.so.6", &object), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(loaded_symbol(&object, names[i]), dlsym(libc_handle(), names[i]), "%s",
			names[i]);
	cr_assert_null(loaded_symbol(&object, "cuInit"));
	cr_assert_null(loaded_symbol(&object, ""));
}

Test(loaded, indirect_functions_are_resolved)
{
	struct loaded object;
	size_t (*length)(const char *);

	cr_assert_eq(loaded_find("libc.so.6", &object), 0);
	length = (size_t(*)(const char *))loaded_symbol(&object, "strlen");
	cr_assert(length);
	cr_assert_eq(length("hearth"), 6);
}

Test(loaded, from_map_and_from_address_are_one)
{
	struct link_map *map = libc_handle();
	struct loaded by_map, by_address;

	cr_assert_eq(loaded_from_map(map, &by_map), 0);
	cr_assert_eq(loaded_find_address((void *)loaded_symbol(&by_map, "qsort"), &by_address), 0);
	cr_assert_eq(by_map.dynamic, by_address.dynamic);
	cr_assert_eq(by_map.base, by_address.base);
	cr_assert_str_eq(by_address.soname, "libc.so.6");
}

Test(loaded, needs)
{
	struct loaded self;

	cr_assert_eq(loaded_find_address((void *)libc_handle, &self), 0);
	cr_assert(loaded_needs(&self, "libc.so.6"));
	cr_assert_not(loaded_needs(&self, "libcuda.so.1"));
}

Test(loaded, file_names)
{
	struct loaded object;
	char name[64], short_name[5];

	cr_assert_eq(loaded_find("libc.so.6", &object), 0);
	cr_assert_eq(loaded_file_name(loaded_symbol(&object, "qsort"), name, sizeof(name)), 0);
	cr_assert_str_eq(name, "libc.so.6");
	cr_assert_eq(loaded_file_name((void *)libc_handle, name, sizeof(name)), 0);
	cr_assert_str_eq(name, "unit_loaded");
	cr_assert_eq(loaded_file_name((void *)libc_handle, short_name, sizeof(short_name)), 0);
	cr_assert_str_eq(short_name, "unit");
	cr_assert_lt(loaded_file_name(name, short_name, sizeof(short_name)), 0);
}

Test(loaded, what_is_not_there)
{
	struct loaded object;

	cr_assert_lt(loaded_find("libnothere.so.1", &object), 0);
	cr_assert_lt(loaded_find_address((void *)8, &object), 0);
}
