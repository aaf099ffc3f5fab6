/* A program's start by way of a spare: `hearth run --spare`. */
#pragma once

#include "base/settings.h"

/* Has a waiting spare run this python program, with everything that it would inherit from this
 * process, and stands for it: ends as it ended. Returns where no spare is of its kind: then nothing
 * was run, this process is as it was, and a plain start is due. With HEARTH_SPARE=auto that is
 * counted, and a spare is begun where there were enough. */
void spare_adopt(char **words, const struct settings *settings);
