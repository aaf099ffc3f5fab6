/* A spare for the next start: `hearth run --spare --keep`. */
#pragma once

/* Where none of this program's kind waits or is being made, starts one that imports these modules
 * (NULL at the end), and does not wait for it. It ends when this process's parent does. This
 * process is as it was. 0; -ENOTSUP for a program that no spare can run; or -errno. */
int spare_keep(char **words, char **imports);
