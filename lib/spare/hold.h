/* The process that holds a spare: a session of its own, its python's parent. It waits with it,
 * hands it over once, and stays for that program's life, to pass its signals and its end on. A new
 * one takes its place in the folder at that moment. */
#pragma once

#include "spare/python.h"

/* Starts one. It writes to `report_fd` "r" when it waits, or what went wrong, and closes it; -1 for
 * none. Returns in the caller, once it can be found in the folder: 0 or -errno. */
int hold_start(const struct spare_plan *plan, int report_fd);
