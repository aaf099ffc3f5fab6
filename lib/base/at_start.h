/* What runs in every preloaded process, and what it writes to, laid side by side: a page that
 * nothing else touches costs every process a microsecond. */
#pragma once

/* A function; compilers put constructors there by themselves. */
#define AT_START __attribute__((section(".text.startup")))

/* A small variable: beside the slots that relocation has just written to, not in .bss. */
#define AT_START_DATA __attribute__((section(".data")))
