/* The newer assertions, `cr_assert(eq(int, a, b))`, in as many types as our unit tests use. They
 * are plain expressions here. */
#pragma once

#include <criterion/criterion.h>

#define eq(type, a, b) (cr_order_##type(a, b) == 0)
#define ne(type, a, b) (cr_order_##type(a, b) != 0)
#define lt(type, a, b) (cr_order_##type(a, b) < 0)
#define le(type, a, b) (cr_order_##type(a, b) <= 0)
#define gt(type, a, b) (cr_order_##type(a, b) > 0)
#define ge(type, a, b) (cr_order_##type(a, b) >= 0)
#define zero(type, a) (!(a))
#define not(a) (!(a))

#define CR_ORDER(name, type)                                                                       \
	static inline int cr_order_##name(type a, type b)                                          \
	{                                                                                          \
		return a < b ? -1 : a > b;                                                         \
	}
CR_ORDER(chr, char)
CR_ORDER(int, int)
CR_ORDER(long, long)
CR_ORDER(llong, long long)
CR_ORDER(uint, unsigned int)
CR_ORDER(ulong, unsigned long)
CR_ORDER(ullong, unsigned long long)
CR_ORDER(i8, int8_t)
CR_ORDER(i16, int16_t)
CR_ORDER(i32, int32_t)
CR_ORDER(i64, int64_t)
CR_ORDER(u8, uint8_t)
CR_ORDER(u16, uint16_t)
CR_ORDER(u32, uint32_t)
CR_ORDER(u64, uint64_t)
CR_ORDER(sz, size_t)
CR_ORDER(dbl, double)
CR_ORDER(ptr, const void *)
#undef CR_ORDER

static inline int cr_order_str(const char *a, const char *b)
{
	return strcmp(a, b);
}
