/* A library of 16 MiB of which little is touched: its beginning, and what lies around 8 MiB. */
enum { SIZE = 16 << 20, MIDDLE = 8 << 20 };

__attribute__((aligned(4096))) const char touched_data[SIZE] = {1};

__attribute__((constructor)) static void touch(void)
{
	volatile const char *data = touched_data;

	(void)data[MIDDLE];
}
