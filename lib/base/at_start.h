/* Code that runs in every preloaded process, laid side by side: a page of code that nothing else
 * touches costs every process a microsecond. (Compilers put constructors there by themselves.) */
#pragma once

#define AT_START __attribute__((section(".text.startup")))
