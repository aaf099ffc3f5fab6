/* The driver's rules, as one program that runs the same on a real driver and on the simulated one
 * and prints what it sees: no handle, no address, no time. tests/system/driver_rules.txt is what an
 * H200 printed. Entries are found by dlsym; arguments travel as machine words. */
#pragma once

#include <stdint.h>
#include <stdio.h>

typedef uintptr_t word;

#define RULES_WORDS 11

/* Calls the driver's entry of that ABI symbol; -1 where the driver lacks it. */
int rules_call(const char *symbol, const word words[RULES_WORDS]);
void *rules_entry(const char *symbol);

#define W(value) ((word)(value))
#define CALL(symbol, ...) rules_call(#symbol, (const word[RULES_WORDS]){__VA_ARGS__})
/* Calls and prints the result behind a text that says what is special. */
#define SHOW(text, symbol, ...) printf("%s, %s: %d\n", #symbol, text, CALL(symbol, __VA_ARGS__))

/* A context that is current, on device 0; ends the child where there is none. */
word rules_context(void);

/* One section each, run in a process of its own. */
void rules_lookup(void);
void rules_errors(void);
void rules_before(void);
void rules_init(void);
void rules_visible(void);
void rules_late(void);
void rules_fork(void);
void rules_copy(void);
void rules_exit(void);
void rules_attributes(void);
void rules_device(void);
void rules_primary(void);
void rules_reset(void);
void rules_flags(void);
void rules_stack(void);
void rules_created(void);
void rules_old(void);
void rules_memory(void);
void rules_module(void);
void rules_library(void);
void rules_eager(void);
void rules_launch(void);
void rules_stream(void);
void rules_event(void);
void rules_capture(void);
void rules_modes(void);
void rules_graph(void);
