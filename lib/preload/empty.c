/* Nothing: the objects made of this file exist for their names and for what they NEED (meson.build
 * beside it). Runs nowhere. */
