/* Numbers in text. */
#include "base/number.h"

static uint64_t read_digits(const char **at, unsigned int base)
{
	uint64_t number = 0;

	for (;; (*at)++) {
		unsigned int digit = (unsigned char)**at;

		if (digit >= '0' && digit <= '9')
			digit -= '0';
		else if (digit >= 'a' && digit <= 'f')
			digit -= 'a' - 10;
		else
			return number;
		if (digit >= base)
			return number;
		number = number > (UINT64_MAX - digit) / base ? UINT64_MAX : number * base + digit;
	}
}

uint64_t number_decimal(const char **at)
{
	return read_digits(at, 10);
}

uint64_t number_hex(const char **at)
{
	return read_digits(at, 16);
}
