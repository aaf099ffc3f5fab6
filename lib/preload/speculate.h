/* The speculative thread: what it does ahead of the program, and when it starts. */
#pragma once

/* From the constructor: remembers what this program is, and starts at once where its profile says
 * so. A process that never looks up cuInit and has no profile pays for reading its own name. */
void speculate_begin(int argc, char **argv);

/* cuInit was looked up or is being bound to. Runs inside the loader, perhaps before our
 * constructor: then it only sets a flag. Starts the thread where that is the moment. */
void speculate_looked_up(void);
