#!/usr/bin/env python3
"""Make C and assembly from driver_api.tsv: generate.py WHAT SPEC OUTPUT.

One function a product; each returns the text of one file. Standard library only.
"""
import sys
import spec


def rows_header(rows):
    """driver_rows.h: the row numbers, in the order of the spec."""
    lines = ["/* Generated from driver_api.tsv by generate.py. */", "#pragma once", "",
             "enum driver_row {"]
    lines += [f"\tROW_{row.abi_symbol}," for row in rows]
    lines += ["\tDRIVER_ROWS", "};", ""]
    return "\n".join(lines)


def sim_exports(rows):
    """sim_exports.c: every entry of the simulated driver, of exact arity, and the table of rows.
    Arguments travel as machine words; what an entry does is said in lib/sim/sim_entries.def."""
    lines = ["/* Generated from driver_api.tsv by generate.py. */", '#include "sim/sim.h"', "",
             '#define EXPORT __attribute__((visibility("default")))', ""]
    for row in rows:
        words = [f"a{i}" for i in range(row.arity)]
        parameters = ", ".join(f"word {word}" for word in words) or "void"
        array = f"(const word[]){{{', '.join(words)}}}" if words else "NULL"
        lines += [f"EXPORT int {row.abi_symbol}({parameters});",
                  f"EXPORT int {row.abi_symbol}({parameters})",
                  "{", f"\treturn sim_entry_call(ROW_{row.abi_symbol}, {array});", "}"]
    lines += ["", "const struct sim_row sim_rows[DRIVER_ROWS] = {"]
    lines += [f'\t{{"{row.public_name}", "{row.abi_symbol}", {row.since}, '
              f"SIM_{row.variant.upper()}, {row.arity}, {row.before_init}, "
              f"(sim_function *){row.abi_symbol}}}," for row in rows]
    lines += ["};", ""]
    return "\n".join(lines)


PRODUCTS = {"rows": rows_header, "sim_exports": sim_exports}


def main(argv):
    if len(argv) != 4 or argv[1] not in PRODUCTS:
        print(f"usage: generate.py {'|'.join(PRODUCTS)} SPEC OUTPUT", file=sys.stderr)
        return 2
    try:
        text = PRODUCTS[argv[1]](spec.read(argv[2]))
    except spec.SpecError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    with open(argv[3], "w", encoding="ascii") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
