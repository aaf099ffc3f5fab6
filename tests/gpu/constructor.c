/* A library whose constructor calls back into the program that opens it, so that the program can
 * act while the loader's lock is held. */

void in_constructor(void);

__attribute__((constructor)) static void constructor(void)
{
	in_constructor();
}
