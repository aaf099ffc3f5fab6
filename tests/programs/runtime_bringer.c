/* A plugin that only NEEDs another, which is linked to one of the tiny runtimes. */
__attribute__((visibility("default"))) extern const char runtime_bringer[];
const char runtime_bringer[] = "brings a user of a runtime";
