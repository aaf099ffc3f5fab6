/* Which files this program has touched, and where: what is read ahead in its next run
 * (profile/files.h). */
#pragma once

/* Looks, and writes the list into the profile, once in a run and only where a list is due. Takes
 * some 20 ms, more in large Python installations (bounded); for a thread of our own. Maps scratch
 * memory, needs some 200 KiB of stack, calls neither driver nor loader. */
void touched_learn(void);

/* At the program's end: the same on a thread of our own, which is waited for. */
void touched_end(void);
