/* Who opens the driver's file by its path meets the driver itself, and not us: natively nothing
 * else could be there. But it must not while the driver has been initialised ahead, nor once
 * another copy has taken its place: profilers (CUPTI) look for the driver in /proc/self/maps and
 * open what they find there. Between begin and end the loader answers that path with us. */
#pragma once

/* The driver is open. Takes the loader's lock. Does nothing where that has begun already, or the
 * loader is of a kind that we do not know. */
void stand_in_begin(void);

/* The driver that was opened is the program's own from now on. Takes no lock. */
void stand_in_end(void);
