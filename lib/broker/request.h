/* Serving a peer's one request. Each of these may end the peer: its source is then gone. */
#pragma once

#include "broker/peer.h"
#include "region/wire.h"

/* Answers at once, or makes the peer wait for something (waits_for). */
void request_serve(struct peer *peer, const struct wire_message *message);

/* Answers a peer whose wait may be over. */
void request_look_again(struct peer *peer);

/* Says why not; `rc` is a negative errno. */
void request_refuse(struct peer *peer, int rc);
