/* env(1) in a chain. */
#pragma once

#include "doctor/chain.h"

/* Applies the words of `env` to the chain's environment and moves on to its program. */
enum chain_step chain_env_follow(struct chain *chain);
