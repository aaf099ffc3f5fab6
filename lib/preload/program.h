/* What the program is called in reports: a base name, never arguments or the text of -c. */
#pragma once

#define PROGRAM_NAME_SIZE 32

/* The script's base name where a Python interpreter runs one ("train.py"), the module's for -m;
 * else the executable's. Reads /proc/self/cmdline. */
void program_name(char ret_name[PROGRAM_NAME_SIZE]);
