/* Under which conditions the program came to CUDA (region/conditions.h), noted in its page for
 * whoever reads the report. */
#pragma once

/* At the program's first cuInit, once it has succeeded: looks at the environment as it is now. */
void under_note(void);

/* The driver has compiled PTX: looks whether its cache can keep that. Some access(2) calls, nothing
 * beside a compiler's time. Keeps errno. */
void under_compiled(void);
